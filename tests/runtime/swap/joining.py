"""Three streams at three nodes, what is pushed, and what the reference says of queries."""

from __future__ import annotations

from typing import Any

from tests.runtime.network.nodes import LiveNode

from thalweg.cql import compile_script
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival

STREAMS = {
    "R": "CREATE STREAM R (a BIGINT, x DOUBLE) TIMESTAMP BY ts BIGINT",
    "S": "CREATE STREAM S (a BIGINT, b VARCHAR, y BIGINT) TIMESTAMP BY ts BIGINT",
    "T": "CREATE STREAM T (b VARCHAR, z BIGINT) TIMESTAMP BY ts BIGINT",
}
THREE_WAY = (
    "SELECT R.a, R.x, S.y, T.z FROM R [Range 12] R, S [Range 7] S, T [Range 9] T "
    "WHERE R.a = S.a AND S.b = T.b"
)


def rows_of(stream: str, low: int, high: int) -> list[dict[str, Any]]:
    if stream == "R":
        return [{"ts": t, "a": t * 5 % 7, "x": t % 13 / 4} for t in range(low, high)]
    if stream == "S":
        return [
            {"ts": t, "a": t * 3 % 7 if t % 11 else None, "b": "pqrs"[t % 4], "y": t % 5}
            for t in range(low, high)
        ]
    return [{"ts": t, "b": "pqrst"[t * 2 % 5], "z": t % 3} for t in range(low, high)]


def push(node: LiveNode, low: int, high: int, streams: str = "RST") -> None:
    for stream in streams:
        node.push(stream, *rows_of(stream, low, high))


def expected(select: str, high: int, since: int | None = None) -> list[tuple[Any, ...]]:
    """What is final once all streams have come to `high` - 1; seen by one who begins at an
    instant."""
    text = "; ".join([*STREAMS.values(), f"CREATE QUERY q AS {select}"])
    (query,) = compile_script(text).queries
    inputs = {
        stream: [
            Arrival(0, row["ts"], place, tuple(v for k, v in row.items() if k != "ts"))
            for place, row in enumerate(rows_of(stream, 1, high))
        ]
        for stream in STREAMS
    }
    found = [c for c in reference.evaluate(query.plan, inputs) if c.ts < high - 1]
    if since is not None:
        found = [c for c in found if c.ts >= since]
    return sorted(((c.ts, c.op, c.row) for c in found), key=repr)


def said(node: LiveNode, query: str = "q") -> list[tuple[Any, ...]]:
    rows = ((r["ts"], r["op"], tuple(r["row"].values())) for r in node.rows(query))
    return sorted(rows, key=repr)


def submit(node: LiveNode, select: str, name: str = "q") -> Any:
    text = f"CREATE QUERY {name} AS {select}"
    return node.http.post("/queries", json={"cql": text}, headers={"thalweg-plan": "swap"})


def submitted(node: LiveNode, select: str, name: str = "q") -> None:
    answer = submit(node, select, name)
    assert answer.is_success, answer.text
