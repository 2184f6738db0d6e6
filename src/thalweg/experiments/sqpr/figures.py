"""Curves over seeds: the mean as a line, the range between the seeds as a band."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw = Callable[["Axes"], None]
Seeds = Sequence[Sequence[float]]  # of each seed, a value for each x


def curves(
    x: Sequence[float], lines: Mapping[str, Seeds], *, across: str, up: str, title: str
) -> Draw:
    def draw(axes: Axes) -> None:
        for label, seeds in lines.items():
            values = np.array(seeds, float)
            (line,) = axes.plot(x, values.mean(axis=0), label=label, marker=".", markersize=4)
            if len(values) > 1:
                low, high = values.min(axis=0), values.max(axis=0)
                axes.fill_between(x, low, high, color=line.get_color(), alpha=0.12, linewidth=0)
        axes.set(xlabel=across, ylabel=up, title=title)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8)
        axes.grid(alpha=0.3)

    return draw


def distributions(lines: Mapping[str, Sequence[float]], *, across: str, title: str) -> Draw:
    """Cumulative: which share of the hosts has x or less."""

    def draw(axes: Axes) -> None:
        for label, values in lines.items():
            ordered = np.sort(np.asarray(values, float))
            axes.step(ordered, np.arange(1, len(ordered) + 1) / len(ordered), label=label)
        axes.set(xlabel=across, ylabel="share of hosts", title=title, ylim=(0, 1.02))
        axes.legend(fontsize=8)
        axes.grid(alpha=0.3)

    return draw
