"""thalweg streams: the streams and relations."""

from __future__ import annotations

from typing import Any

from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Url
from thalweg.cli.exits import reporting
from thalweg.cli.output import emit_lines, emit_table

_COLUMNS = [
    ("NAME", "left"),
    ("STATE", "left"),
    ("ARRIVED", "right"),
    ("BACKLOG", "right"),
    ("LATE", "right"),
    ("REJECTED", "right"),
    ("WATERMARK", "left"),
    ("SOURCE", "left"),
    ("ERROR", "left"),
]


def streams(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the streams: watermarks, tuples that wait, tuples that were late or rejected."""
    with reporting(), Service(url) as service:
        found = service.get("/streams")
        if as_json:
            emit_lines(found)
            return
        columns, row = _COLUMNS, _row
        if any("node" in s for s in found):  # a network answers
            columns = [("NODE", "left"), *columns]
            row = _row_of_node
        emit_table(columns, map(row, found), empty="no streams: `thalweg submit` CREATE STREAM …")


def _row_of_node(stream: dict[str, Any]) -> tuple[Any, ...]:
    return (stream["node"], *_row(stream))


def _row(stream: dict[str, Any]) -> tuple[Any, ...]:
    counts = (f"{stream[c]:,}" for c in ("arrived", "backlog", "late", "rejected"))
    return (
        stream["name"],
        stream["state"],
        *counts,
        stream["watermark"],
        stream["source"] or "push",
        stream["error"] or "",
    )
