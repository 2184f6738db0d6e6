"""The demo's screen: how it goes, the queries with their last rows, the streams with their time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from thalweg.cli.demo.pulse import Picture
from thalweg.cli.demo.sparkline import sparkline
from thalweg.engine.site.status import QueryStatus

_ACCENT = "cyan"
_HEADER_LINES, _STREAM_LINES, _QUERY_FRAME = 5, 7, 4
_TURN_S = 4.0  # a page of queries is shown so long, where not all fit
_STATES = {"running": "green", "waiting": "yellow", "parked": "bold red", "finished": "dim"}


@dataclass(frozen=True, slots=True)
class Screen:
    url: str
    seconds: float | None  # None goes on until Ctrl-C
    runs_on: str

    def render(self, picture: Picture, width: int, height: int) -> RenderableType:
        layout = Layout()
        layout.split_column(
            Layout(self._header(picture, width), size=_HEADER_LINES),
            Layout(self._queries(picture, width, height - _HEADER_LINES - _STREAM_LINES)),
            Layout(_streams(picture), size=_STREAM_LINES),
        )
        return layout

    # --- the head

    def _header(self, picture: Picture, width: int) -> RenderableType:
        curve = max(10, min(40, width // 4))
        facts = Table.grid(expand=True, padding=(0, 2))
        for _ in range(3):
            facts.add_column(ratio=1, no_wrap=True)
        ticks = [s * 1000 for s in picture.tick_s]
        now_events = picture.events_per_s[-1] if picture.events_per_s else 0
        facts.add_row(
            _fact("events", f"{picture.events:,}", f"{now_events:,.0f}/s"),
            _fact("rows", f"{picture.rows:,}", f"{sum(picture.rows_per_s.values()):,.0f}/s"),
            _fact(
                "tick",
                f"{picture.tick}",
                f"median {picture.median_tick_s * 1000:.0f} ms, "
                f"95 % {picture.tick_quantile(0.95) * 1000:.0f} ms",
            ),
        )
        facts.add_row(
            Text(sparkline(picture.events_per_s, curve), style="green"),
            Text(f"{len(picture.queries)} queries, one Spark job a tick", style="dim"),
            Text(sparkline(ticks, curve), style="magenta"),
        )
        title = Text.assemble(
            (" Thalweg ", f"bold {_ACCENT}"), (f"{self.runs_on}  {self.url} ", "dim")
        )
        return Panel(
            Group(facts, self._progress(picture)),
            title=title,
            title_align="left",
            border_style="red" if picture.error else _ACCENT,
            box=box.ROUNDED,
            subtitle=Text(picture.error or "", style="red") if picture.error else None,
        )

    def _progress(self, picture: Picture) -> RenderableType:
        if self.seconds is None:
            return Text(f"{picture.elapsed_s:.0f} s, until Ctrl-C", style="dim")
        grid = Table.grid(expand=True, padding=(0, 1))
        grid.add_column(ratio=1)
        grid.add_column(justify="right", no_wrap=True)
        done = min(picture.elapsed_s, self.seconds)
        bar = ProgressBar(total=self.seconds, completed=done, complete_style=_ACCENT)
        grid.add_row(bar, Text(f"{done:.0f} of {self.seconds:.0f} s", style="dim"))
        return grid

    # --- queries

    def _queries(self, picture: Picture, width: int, height: int) -> RenderableType:
        room = max(3, height - _QUERY_FRAME)
        pages = [picture.queries[i : i + room] for i in range(0, len(picture.queries), room)]
        number = int(picture.elapsed_s / _TURN_S) % len(pages) if pages else 0
        shown = pages[number] if pages else []
        first = number * room
        table = Table(box=None, expand=True, pad_edge=False, header_style="bold")
        table.add_column("query", no_wrap=True)
        table.add_column("kind", no_wrap=True, style="dim")
        table.add_column("rows", justify="right", no_wrap=True)
        table.add_column("rows/s", justify="right", no_wrap=True)
        table.add_column("last row", ratio=1, no_wrap=True, overflow="ellipsis")
        for query in shown:
            table.add_row(*_query_cells(query, picture))
        span = f"{first + 1}-{first + len(shown)} of " if len(pages) > 1 else ""
        return Panel(
            table,
            title=f"[bold]standing queries[/] [dim]{span}{len(picture.queries)}[/]",
            title_align="left",
            border_style="dim",
            box=box.ROUNDED,
        )


def _query_cells(query: QueryStatus, picture: Picture) -> tuple[Text, ...]:
    rate = picture.rows_per_s.get(query.name, 0.0)
    return (
        Text(query.name, style=_STATES[query.state]),
        Text(query.kind),
        Text(count_text(query)),
        Text(f"{rate:,.0f}" if rate >= 0.5 else "·", style="" if rate >= 0.5 else "dim"),
        last_row(query, picture),
    )


def count_text(query: QueryStatus) -> str:
    return "-" if query.rows is None else f"{query.rows:,}"


def last_row(query: QueryStatus, picture: Picture) -> Text:
    """The row that the query said last, or its error."""
    if query.error:
        return Text(query.error, style="red")
    change = picture.last.get(query.name)
    if change is None:
        return Text("")
    colour = "green" if change.op == "+" else "red"
    text = Text(f"{change.op} ", style=f"bold {colour}")
    for (name, _), value in zip(query.columns, change.row, strict=True):
        text.append(f"{name} ", style="dim")
        text.append(f"{value_text(value)}  ")
    return text


def value_text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, datetime):
        return f"{value:%H:%M:%S}"
    return str(value)


def _streams(picture: Picture) -> RenderableType:
    table = Table(box=None, expand=True, pad_edge=False, header_style="bold")
    table.add_column("stream", no_wrap=True, ratio=2)
    for heading in ("arrived", "events/s", "waiting"):
        table.add_column(heading, justify="right", no_wrap=True, ratio=1)
    table.add_column("watermark", justify="right", no_wrap=True, ratio=2)
    for stream in picture.streams:
        table.add_row(
            Text(stream.name, style=_ACCENT),
            f"{stream.arrived:,}",
            f"{picture.arrived_per_s.get(stream.name, 0):,.0f}",
            f"{stream.backlog:,}",
            Text(stream.error or stream.watermark or "", style="red" if stream.error else ""),
        )
    return Panel(
        table,
        title="[bold]streams[/]",
        title_align="left",
        border_style="dim",
        box=box.ROUNDED,
    )


def _fact(name: str, value: str, more: str) -> Text:
    return Text.assemble((f"{name} ", "dim"), (value, "bold"), (f"  {more}", "dim"))
