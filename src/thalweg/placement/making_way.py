"""Making way for a query that finds no room: others are taken out, and put back elsewhere.

The nearest plan says which hosts are short of what. A result that rests on what is short there can
be taken out with all that only it needs; the new query takes its place, and the programme finds
another for it, over all its join orders. If it finds none, everything is put back as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from thalweg.placement.leaving import downstream
from thalweg.placement.ledger import Ledger
from thalweg.placement.rows import Place, Run, Send, Shortage

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
    """The rows that use what is short, and how much of it."""
    gamma, rate = ledger.problem.operators.cpu, ledger.problem.streams.rate_bps
    uses: Callable[[Run | Send], bool]
    match lack.resource:
        case "cpu":
            uses = lambda r: isinstance(r, Run) and r.host == lack.host  # noqa: E731
        case "bandwidth out":
            uses = lambda r: isinstance(r, Send) and r.source == lack.host  # noqa: E731
        case "bandwidth in":
            uses = lambda r: isinstance(r, Send) and r.target == lack.host  # noqa: E731
        case _:
            link = (lack.host, lack.target)
            uses = lambda r: isinstance(r, Send) and (r.source, r.target) == link  # noqa: E731
    return {
        r: float(gamma[r.operator] if isinstance(r, Run) else rate[r.stream])
        for r in ledger.providers.values()
        if uses(r)
    }
