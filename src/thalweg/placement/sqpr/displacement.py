"""Making way for a query that finds no room: others are taken out, and put back elsewhere.

The nearest plan says which hosts are short of what. A result that rests on what is short there can
be taken out with all that only it needs; the new query takes its place, and the programme finds
another for it, over all its join orders. If it finds none, everything is put back as it was.
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.placement.ledger import Ledger
from thalweg.placement.rows import Place, Run, Send, Shortage
from thalweg.placement.sqpr.host_loss import downstream

MOST_RESULTS = 2  # that rest on one row and are taken out together


@dataclass(frozen=True, slots=True)
class TakenOut:
    """Results with their queries, and all rows that nobody else needed."""

    results: tuple[tuple[Place, tuple[int, ...]], ...]
    removed: tuple[Run | Send, ...]


def take_out(ledger: Ledger, places: tuple[Place, ...]) -> TakenOut:
    results = tuple((place, tuple(ledger.results[place])) for place in places)
    for _, queries in results:
        for query in queries:
            ledger.unserve(query)
    removed = ledger.sweep(places)
    return TakenOut(results, tuple(removed))


def put_back(ledger: Ledger, taken: TakenOut) -> None:
    for row in taken.removed:
        if isinstance(row, Run):
            ledger.add_run(row)
        else:
            ledger.add_send(row)
    for (host, _), queries in taken.results:
        for query in queries:
            ledger.serve(query, host)


def in_the_way(ledger: Ledger, short: list[Shortage]) -> list[tuple[Place, ...]]:
    """Results that could make way; those that would free just enough come first.

    Queries that are bound to a proxy or to a latency stay.
    """
    freed: dict[tuple[Place, ...], float] = {}
    for lack in short:
        missing = lack.need - lack.left
        for row, amount in _users(ledger, lack).items():
            below = downstream(ledger, [ledger.place_of(row)])
            results = tuple(sorted(p for p in below if p in ledger.results))
            if len(results) <= MOST_RESULTS and all(_movable(ledger, p) for p in results):
                freed[results] = freed.get(results, 0.0) + amount / missing
    order = sorted(freed, key=lambda r: (freed[r] < 1 - 1e-9, len(r), abs(freed[r] - 1), r))
    return [results for results in order if results]


def _movable(ledger: Ledger, place: Place) -> bool:
    queries = ledger.problem.queries
    return all(
        queries.proxy[q] < 0 and queries.latency_bound_ms[q] == float("inf")
        for q in ledger.results[place]
    )


def _users(ledger: Ledger, lack: Shortage) -> dict[Run | Send, float]:
    """The rows that use what is short, and how much of it: one pass, as every refusal asks."""
    rows, at = ledger.providers.values(), lack.host
    using: list[Run | Send]
    if lack.resource == "cpu":
        using = [row for row in rows if isinstance(row, Run) and row.host == at]
    else:
        sends = (row for row in rows if isinstance(row, Send))
        match lack.resource:
            case "bandwidth out":
                using = [row for row in sends if row.source == at]
            case "bandwidth in":
                using = [row for row in sends if row.target == at]
            case _:
                using = [row for row in sends if (row.source, row.target) == (at, lack.target)]
    amounts = ((row, _amount(ledger, row)) for row in using)
    return {row: amount for row, amount in amounts if amount > 0}


def _amount(ledger: Ledger, row: Run | Send) -> float:
    if isinstance(row, Run):
        return float(ledger.problem.operators.cpu[row.operator])
    return float(ledger.problem.streams.rate_bps[row.stream])
