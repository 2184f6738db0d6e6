"""thalweg plan --live: what a strategy would do with a running network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from thalweg.cli.client import Service
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.output import emit, emit_json
from thalweg.placement.units import amount, bps


def run_live(
    cql: Path | None,
    strategy: str | None,
    url: str,
    *,
    as_json: bool,
    bound_ms: float | None = None,
) -> None:
    with reporting(), Service(url) as service:
        if cql is None:
            raise CommandFailed("--live takes queries: --cql FILE", BAD_INPUT)
        try:
            text = cql.read_text(encoding="utf-8")
        except OSError as error:
            raise CommandFailed(f"{cql}: {error.strerror}", BAD_INPUT) from None
        answer = service.request(
            "POST",
            "/network/plan",
            json={"cql": text, "name": str(cql)},
            headers=({} if strategy is None else {"thalweg-strategy": strategy})
            | ({} if bound_ms is None else {"thalweg-bound-ms": str(bound_ms)}),
        )
        found = answer.json()
        if as_json:
            emit_json(found)
        else:
            emit("\n".join(_lines(found)))


def _lines(found: dict[str, Any]) -> Iterator[str]:
    yield "the network as it is measured now"
    for node in found["nodes"]:
        limits = [
            f"{amount(node[key])} {what}" if key == "cpu" else f"{bps(node[key])} {what}"
            for key, what in (("cpu", "CPU"), ("out_bps", "out"), ("in_bps", "in"))
            if node[key] is not None
        ]
        delays = ", ".join(f"{ms:.2g} ms to {n}" for n, ms in sorted(node["delays_ms"].items()))
        yield f"  {node['name']}: {', '.join(limits) or 'no limits'}; {delays or 'alone'}"
        for name, rate in node["streams"].items():
            yield f"    ≋ {name}: {rate['rows_per_s']:.3g} rows/s, {bps(rate['bps'])}"
    admitted, refused = found["queries"], found["refused"]
    yield f"{found['strategy']} admits {len(admitted)} of {len(admitted) + len(refused)} queries"
    yield f"nodes send each other {bps(found['traffic_bps'])}"
    for query in admitted:
        yield f"  {query['query']} at {query['node']}"
        for fragment in query["fragments"]:
            yield f"    ⨝ at {fragment['node']}: {fragment['computes']}"
        yield from (f"    {line}" for line in query["why"])
    for query in refused:
        where = query["node"] or "all nodes"
        yield f"  {query['query']} is refused: {query['resource']} at {where}: {query['detail']}"
