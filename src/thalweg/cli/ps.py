"""thalweg ps: the standing queries."""

from __future__ import annotations

from typing import Any

from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Url
from thalweg.cli.exits import reporting
from thalweg.cli.output import emit_json, emit_table

_COLUMNS = [
    ("NAME", "left"),
    ("STATE", "left"),
    ("KIND", "left"),
    ("ROWS", "right"),
    ("COST", "right"),
    ("FINAL UP TO", "left"),
    ("STREAMS", "left"),
    ("ERROR", "left"),
]


def ps(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the standing queries: state, rows so far, cost, and how far results are final."""
    with reporting(), Service(url) as service:
        queries = service.get("/queries")
        if as_json:
            emit_json(queries)
            return
        emit_table(_COLUMNS, map(_row, queries), empty="no queries: `thalweg submit` some")


def _row(query: dict[str, Any]) -> tuple[Any, ...]:
    errors = [query["error"], *(f"{s['name']}: {s['error']}" for s in query["sinks"] if s["error"])]
    return (
        query["name"],
        query["state"],
        query["kind"],
        f"{query['rows']:,}",
        f"{query['cost_s']:.2f} s",
        query["frontier"],
        ", ".join(query["streams"]),
        "; ".join(filter(None, errors)),
    )
