"""A host is gone: what ran there is gone with it, and so is everything downstream."""

from __future__ import annotations

from thalweg.placement.ledger import Ledger, Run

Place = tuple[int, int]  # (host, stream)


def lose_host(ledger: Ledger, host: int) -> tuple[int, ...]:
    """Take the host out of the books; gives the queries that lost their result, in order."""
    lost = _downstream(ledger, {p for p in ledger.providers if p[0] == host}, host)
    ledger.alive[host] = False
    queries = sorted(q for p in sorted(lost) for q in ledger.results.get(p, ()))
    home_results = [q for p, qs in ledger.results.items() if p[0] == host for q in qs]
    for query in sorted({*queries, *home_results}):
        ledger.unserve(query)
    rows = [ledger.providers[p] for p in sorted(lost) if p in ledger.providers]
    for row in rows:
        ledger.remove(row)
    ledger.sweep(p for row in rows for p in ledger.inputs_of(row))
    return tuple(sorted({*queries, *home_results}))


def _downstream(ledger: Ledger, places: set[Place], host: int) -> set[Place]:
    """These places and all that is made or received from them, or from the host's own streams."""
    users: dict[Place, list[Place]] = {}
    for place, row in ledger.providers.items():
        for needed in ledger.inputs_of(row):
            users.setdefault(needed, []).append(place)
    stack = [*places, *(p for p in users if p[0] == host)]
    found: set[Place] = set()
    while stack:
        place = stack.pop()
        if place not in found:
            found.add(place)
            stack += users.get(place, ())
    return found


def plan_of(ledger: Ledger, query: int) -> list[Place]:
    """All places, with what provides them, that the query's result rests on."""
    stack = [(ledger.server[query], int(ledger.problem.queries.wanted[query]))]
    found: dict[Place, None] = {}
    while stack:
        place = stack.pop()
        row = ledger.providers.get(place)
        if row is not None and place not in found:
            found[place] = None
            stack += ledger.inputs_of(row)
    return list(found)


def cpu_of(ledger: Ledger, query: int) -> float:
    rows = (ledger.providers[p] for p in plan_of(ledger, query))
    gamma = ledger.problem.operators.cpu
    return float(sum(gamma[row.operator] for row in rows if isinstance(row, Run)))
