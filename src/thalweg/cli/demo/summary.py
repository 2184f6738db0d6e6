"""What the demo has done: a table for people, a dictionary for programs."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from thalweg.cli.demo.pulse import Picture
from thalweg.cli.demo.screen import count_text, last_row


def print_summary(picture: Picture, console: Console) -> None:
    """Queries by what they cost, then the whole in a few lines."""
    if not console.is_terminal:
        console.width = 120
    table = Table(box=None, expand=True, pad_edge=False, header_style="bold")
    table.add_column("query", no_wrap=True)
    table.add_column("kind", style="dim", no_wrap=True)
    table.add_column("rows", justify="right", no_wrap=True)
    table.add_column("cost", justify="right", no_wrap=True)
    table.add_column("last row", no_wrap=True, overflow="ellipsis", ratio=1)
    for query in picture.queries:
        table.add_row(
            query.name,
            query.kind,
            count_text(query),
            f"{query.cost_s:.2f} s",
            last_row(query, picture),
        )
    console.print(table)
    console.print()
    for what, value in _facts(picture):
        console.print(Text.assemble((f"{what:<10}", "dim"), (value, "bold")))


def _facts(picture: Picture) -> list[tuple[str, str]]:
    data = summary_data(picture)
    return [
        ("events", f"{data['events']:,} in {data['seconds']:.0f} s"),
        ("rows", f"{data['rows']:,} from {len(picture.queries)} queries"),
        (
            "ticks",
            f"{data['ticks']}, each one Spark job for all queries; "
            f"median {data['tick_median_s']:.2f} s, 95 % {data['tick_p95_s']:.2f} s",
        ),
        ("time", f"auctions up to {min(s.watermark or '' for s in picture.streams)}"),
    ]


def summary_data(picture: Picture) -> dict[str, Any]:
    return {
        "seconds": round(picture.elapsed_s, 3),
        "events": picture.events,
        "rows": picture.rows,
        "ticks": picture.tick,
        "tick_median_s": round(picture.median_tick_s, 4),
        "tick_p95_s": round(picture.tick_quantile(0.95), 4),
        "queries": [
            {"name": q.name, "state": q.state, "rows": q.rows, "cost_s": round(q.cost_s, 4)}
            for q in picture.queries
        ],
    }
