"""How systems fare by the number of queries, drawn; what was not measured is hollow and dashed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def by_queries(axes: Axes, rows: Sequence[Mapping[str, Any]], value: str, label: str) -> None:
    for place, system in enumerate(dict.fromkeys(r["system"] for r in rows)):
        of = [r for r in rows if r["system"] == system]
        measured = [r for r in of if r["how"] == "measured"]
        beyond = measured[-1:] + [r for r in of if r["how"] != "measured"]
        colour = f"C{place}"
        axes.plot(
            [r["queries"] for r in measured],
            [r[value] for r in measured],
            "o-",
            color=colour,
            label=system,
        )
        if len(beyond) > 1:
            axes.plot(
                [r["queries"] for r in beyond],
                [r[value] for r in beyond],
                "o--",
                color=colour,
                markerfacecolor="none",
                label=f"{system}, extrapolated",
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("standing queries")
    axes.set_ylabel(label)
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
