"""A host is gone: what ran there is gone with it, and so is everything downstream."""

from __future__ import annotations

from collections.abc import Iterable

from thalweg.placement.ledger import Ledger
from thalweg.placement.rows import RESULT, Place


def lose_host(ledger: Ledger, host: int) -> tuple[int, ...]:
    """Take the host out of the books; gives the queries that lost their result, in order."""
    lost = downstream(ledger, {p for p in (*ledger.providers, *ledger.users) if p[0] == host})
    ledger.alive[host] = False
    queries = sorted(q for p in lost for q in ledger.results.get(p, ()))
    for query in queries:
        ledger.unserve(query)
    rows = [ledger.providers[p] for p in sorted(lost) if p in ledger.providers]
    for row in rows:
        ledger.remove(row)
    ledger.sweep(p for row in rows for p in ledger.inputs_of(row))
    return tuple(queries)


def downstream(ledger: Ledger, places: Iterable[Place]) -> set[Place]:
    """These places and all that is made or received from them."""
    found: set[Place] = set()
    stack = list(places)
    while stack:
        place = stack.pop()
        if place not in found and place != RESULT:
            found.add(place)
            stack += ledger.users.get(place, ())
    return found
