"""The one form of benches and experiments: parameters in, a report out.

A bench or an experiment is a module with a frozen dataclass `Parameters` (its defaults are the full
run, `quick()` about a minute) and `run(parameters, progress) -> Report`. The report is a table of
measurements, goals, what the source says beside what is seen here, notes and figures; `publish`
prints it for people or for programs, and writes CSV, JSON, PNG, SVG and Markdown.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Progress(Protocol):
    """Says what is going on now, and which part of the whole is done, where that is known."""

    def __call__(self, text: str, fraction: float | None = None) -> None: ...


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure to reach; goals report, they do not fail a run."""

    name: str
    measured: float
    goal: float
    unit: str = ""
    at_least: bool = True

    @property
    def met(self) -> bool:
        return self.measured >= self.goal if self.at_least else self.measured <= self.goal

    def as_row(self) -> dict[str, Any]:
        bound = "≥" if self.at_least else "≤"
        return {
            "name": self.name,
            "measured": self.measured,
            "goal": f"{bound} {self.goal:,.10g} {self.unit}".strip(),
            "met": self.met,
        }


UNEXPLAINED = "unexplained: no run shows why"


@dataclass(frozen=True, slots=True)
class Beside:
    """A statement of the source, and what was seen here; where they differ, why.

    A reason stands here only if a run supports it; else the difference is UNEXPLAINED.
    """

    figure: str
    source: str
    here: str
    why: str = ""

    def as_row(self) -> dict[str, Any]:
        row = {"figure": self.figure, "the source": self.source, "here": self.here}
        return {**row, "why they differ": self.why or "-"}


@dataclass(frozen=True)
class Report:
    name: str
    title: str
    parameters: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    goals: Sequence[Goal] = ()
    notes: Sequence[str] = ()
    beside: Sequence[Beside] = ()
    details: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)  # more CSV
    figures: Mapping[str, Callable[[Axes], None]] = field(default_factory=dict)
    command: str = ""  # that made it
    took_s: float | None = None  # of CPU, on one core

    def as_json(self) -> str:
        return json.dumps(
            {
                "name": self.name,
                "command": self.command,
                "took_s": self.took_s,
                "parameters": dict(self.parameters),
                "rows": [dict(r) for r in self.rows],
                "goals": [g.as_row() for g in self.goals],
                "beside": [b.as_row() for b in self.beside],
                "notes": list(self.notes),
            },
            default=str,
            indent=2,
        )


def publish(report: Report, *, as_json: bool = False, out: Path | None = None) -> None:
    """Print the report on stdout, and write its files where `out` says."""
    if as_json:
        sys.stdout.write(report.as_json() + "\n")
    else:
        _show(report, Console())
    if out is not None:
        write(report, out)


def write(report: Report, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    _write_csv(out / f"{report.name}.csv", report.rows)
    for name, rows in report.details.items():
        _write_csv(out / f"{report.name}-{name}.csv", rows)
    (out / f"{report.name}.json").write_text(report.as_json() + "\n")
    for name in report.figures:
        _draw(report, name, out)
    (out / f"{report.name}.md").write_text(as_markdown(report))


def _write_csv(file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with file.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, _columns(rows))
        writer.writeheader()
        writer.writerows(rows)


def as_markdown(report: Report) -> str:
    parameters = ", ".join(f"{k} = {v}" for k, v in report.parameters.items())
    parts = [f"# {report.title}", f"Parameters: {parameters}."]
    if report.command:
        parts.append(f"Made by `{report.command}`{_took(report.took_s)}.")
    parts.append(_markdown_table(report.rows))
    if report.goals:
        parts += ["## Goals", _markdown_table([g.as_row() for g in report.goals])]
    if report.beside:
        parts += ["## Beside the source", _markdown_table([b.as_row() for b in report.beside])]
    parts += list(report.notes)
    parts += [f"![{name}]({report.name}-{name}.svg)" for name in report.figures]
    return "\n\n".join(parts) + "\n"


def _took(seconds: float | None) -> str:
    if seconds is None:
        return ""
    told = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    return f" in {told} of CPU time on one core"


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(c for row in rows for c in row))


def _markdown_table(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = _columns(rows)
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_text(r.get(c, "")) for c in columns) + " |" for r in rows]
    return "\n".join(lines)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _show(report: Report, console: Console) -> None:
    tables = [_rich_table(report.title, report.rows)]
    if report.goals:
        tables.append(_rich_table("goals", [g.as_row() for g in report.goals]))
    if report.beside:
        tables.append(_rich_table("beside the source", [b.as_row() for b in report.beside]))
    # Words wrap, but no number is cut off, however narrow the terminal.
    unlimited = console.options.update(width=10_000)
    needed = (Measurement.get(console, unlimited, table).minimum for table in tables)
    console.width = max(console.width, *needed)
    for table in tables:
        console.print(table)
    for note in report.notes:
        console.print(Text(note))


def _rich_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title=title)
    texts = {c: [_text(r.get(c, "")) for r in rows] for c in _columns(rows)}
    for column, cells in texts.items():
        if all(isinstance(r.get(column, 0), int | float) for r in rows):
            # As narrow as its numbers, and no narrower.
            width = max(map(len, (*cells, *column.split())))
            table.add_column(fill(column, width), justify="right", no_wrap=True)
        else:
            table.add_column(column, justify="left")
    for row in zip(*texts.values(), strict=True):
        table.add_row(*map(Text, row))
    return table


def _draw(report: Report, name: str, out: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    report.figures[name](axes)
    for ending in ("png", "svg"):
        figure.savefig(
            out / f"{report.name}-{name}.{ending}",
            metadata={"Date": None} if ending == "svg" else None,
        )
    pyplot.close(figure)
