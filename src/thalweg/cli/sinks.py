"""thalweg sinks: where rows are written to."""

from __future__ import annotations

from typing import Any

from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Url
from thalweg.cli.exits import reporting
from thalweg.cli.output import emit_lines, emit_table

_COLUMNS = [
    ("NAME", "left"),
    ("QUERY", "left"),
    ("STATE", "left"),
    ("TARGET", "left"),
    ("OPTIONS", "left"),
    ("FOLDER", "left"),
    ("ERROR", "left"),
]


def sinks(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the sinks: what they write, where to, and why one was given up."""
    with reporting(), Service(url) as service:
        found = service.get("/sinks")
        if as_json:
            emit_lines(found)
            return
        empty = "no sinks: CREATE SINK name FROM query INTO 'parquet:folder' makes one"
        columns, row = _COLUMNS, _row
        if any("node" in sink for sink in found):  # a network answers
            columns = [("NODE", "left"), *columns]
            row = _row_of_node
        emit_table(columns, map(row, found), empty=empty)


def _row_of_node(sink: dict[str, Any]) -> tuple[Any, ...]:
    return (sink["node"], *_row(sink))


def _row(sink: dict[str, Any]) -> tuple[Any, ...]:
    return (
        sink["name"],
        sink["query"],
        "writing" if sink["error"] is None else "given up",
        sink["target"],
        ", ".join(f"{k} {v}" for k, v in sink["options"].items()),
        sink["folder"],
        sink["error"] or "",
    )
