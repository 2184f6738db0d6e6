"""thalweg ps: the standing queries."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Url
from thalweg.cli.exits import reporting
from thalweg.cli.output import emit_lines, emit_table

_COLUMNS = [
    ("NAME", "left"),
    ("STATE", "left"),
    ("KIND", "left"),
    ("GROUP", "left"),
    ("ROWS", "right"),
    ("COST", "right"),
    ("DELAY", "right"),
    ("PR", "right"),
    ("FINAL UP TO", "left"),
    ("COMPLETE FROM", "left"),
    ("STREAMS", "left"),
    ("ERROR", "left"),
]


class Order(StrEnum):
    """Of the list; the largest first."""

    NAME = "name"
    PR = "pr"
    DELAY = "delay"
    COST = "cost"
    ROWS = "rows"


_KEYS = {Order.PR: "pr", Order.DELAY: "delay_ms", Order.COST: "cost_s", Order.ROWS: "rows"}

Sort = Annotated[
    Order | None,
    typer.Option("--sort", help="By name, or with the largest first; else as they were made."),
]


def ps(url: Url = DEFAULT_URL, as_json: AsJson = False, sort: Sort = None) -> None:
    """List the standing queries: state, group, rows so far, cost, and how far results are final.

    DELAY is how long results come after their tuples, over all nodes; PR, the performance ratio,
    is that over the work in them: 1 for a query that never waits.

    A query that a group answers has its part of the group's cost; its rows are counted while
    somebody listens. `thalweg explain --shared` shows the groups. A query that began with less than
    its windows ask for is `filling` until it is complete.
    """
    with reporting(), Service(url) as service:
        queries = _sorted(service.get("/queries"), sort)
        if as_json:
            emit_lines(queries)
            return
        columns, row = _COLUMNS, _row
        if any("node" in q for q in queries):  # a network answers
            columns = [("NODE", "left"), *columns]
            row = _row_of_node
        emit_table(columns, map(row, queries), empty="no queries: `thalweg submit` some")


def _sorted(queries: list[dict[str, Any]], order: Order | None) -> list[dict[str, Any]]:
    if order is None:
        return queries
    if order is Order.NAME:
        return sorted(queries, key=lambda q: str(q["name"]))
    return sorted(queries, key=lambda q: -(q[_KEYS[order]] or 0.0))


def _row_of_node(query: dict[str, Any]) -> tuple[Any, ...]:
    return (query["node"], *_row(query))


def _row(query: dict[str, Any]) -> tuple[Any, ...]:
    errors = [query["error"], *(f"{s['name']}: {s['error']}" for s in query["sinks"] if s["error"])]
    return (
        query["name"],
        query["state"],
        query["kind"],
        query["group"],
        None if query["rows"] is None else f"{query['rows']:,}",
        _seconds(query["cost_s"]),
        None if query["delay_ms"] is None else f"{query['delay_ms']:,.0f} ms",
        None if query["pr"] is None else f"{query['pr']:,.3g}",
        query["frontier"],
        query["complete_from"],
        ", ".join(dict.fromkeys(map(stream_text, query["streams"]))),
        "; ".join(filter(None, errors)),
    )


def stream_text(name: str) -> str:
    """What a query reads, for people: nodes have names of their own for what others compute."""
    again = name.removeprefix("fragment/again/")
    if again != name:
        return again.rpartition(".")[0]
    kind, _, rest = name.partition("/")
    match kind:
        case "fragment" if rest:
            return f"fragment {rest.partition('@')[0]}"
        case "due" if rest:
            return f"due rows of {rest}"
        case "swap" if rest:
            return "a join across nodes"
    return name


def _seconds(cost_s: float) -> str:
    """Members of large groups cost little, but never nothing."""
    return f"{cost_s:.2f} s" if cost_s >= 0.01 or not cost_s else f"{cost_s:.1g} s"
