"""Line 4 of Algorithm 1: what lies outside S(q) and O(q) is fixed (SQPR, IV-A).

All runs and sends of streams in S(q) are taken out of the books, whoever uses them; so the model is
free to make and send them anew. Who is fixed and uses one of them goes on to do so: it has to be
where it was. Streams of S(q) that are results of admitted queries have to be served (IV.9), by
whichever host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.placement.abstract import AbstractPlans
from thalweg.placement.arrays import NONE
from thalweg.placement.ledger import Ledger
from thalweg.placement.milp.instance import Demand, Instance
from thalweg.placement.milp.solving import Rows
from thalweg.placement.rows import RESULT, Place, Run, Send

Wish = tuple[int, int]  # (stream, proxy or NONE)


@dataclass(frozen=True, slots=True)
class TakenOut:
    """What ran in S(q), to be put back if the solver finds nothing better."""

    rows: tuple[Run | Send, ...]
    served: tuple[tuple[int, int], ...]  # (query, host)
    needed: frozenset[Place]


def take_out(ledger: Ledger, streams: Sequence[int]) -> TakenOut:
    inside = set(streams)
    places = [(h, s) for s in streams for h in np.flatnonzero(ledger.available[s]).tolist()]
    needed = frozenset(
        place
        for place in places
        if any(u != RESULT and u[1] not in inside for u in ledger.users.get(place, ()))
    )
    served = [(q, place[0]) for place in places for q in ledger.results.get(place, ())]
    for query, _ in served:
        ledger.unserve(query)
    rows = [ledger.providers[place] for place in places if place in ledger.providers]
    for row in rows:
        ledger.remove(row)
    return TakenOut(tuple(rows), tuple(served), needed)


def put(ledger: Ledger, rows: Sequence[Run | Send], served: Sequence[tuple[int, int]]) -> None:
    for row in rows:
        if isinstance(row, Run):
            ledger.add_run(row)
        else:
            ledger.add_send(row)
    for query, host in served:
        ledger.serve(query, host)


def reduced(
    ledger: Ledger, plans: Sequence[AbstractPlans], taken: TakenOut, new: Sequence[int]
) -> tuple[Instance, list[list[int]]]:
    """The model's instance, with S(q) taken out of the books; and each demand's queries.

    One new query has to be served; of several, as many as possible are (a batch is one model).
    """
    problem = ledger.problem
    hosts = tuple(np.flatnonzero(ledger.alive).tolist())
    wishes: dict[Wish, list[int]] = {}
    for query in dict.fromkeys([*(q for q, _ in taken.served), *new]):
        wish = int(problem.queries.wanted[query]), int(problem.queries.proxy[query])
        wishes.setdefault(wish, []).append(query)
    old = {query for query, _ in taken.served} - set(new)
    demands = tuple(
        Demand(
            stream,
            hosts if proxy == NONE else (proxy,),
            required=len(new) == 1 or not old.isdisjoint(queries),
            queries=len(queries),
        )
        for (stream, proxy), queries in wishes.items()
    )
    streams = dict.fromkeys(s for p in plans for s in p.streams)
    given = {(int(problem.streams.home[s]), s) for s in streams if problem.streams.home[s] != NONE}
    link = ledger.link_left
    instance = Instance(
        problem,
        hosts,
        tuple(dict.fromkeys(o for p in plans for o in p.operators)),
        frozenset(place for place in given if ledger.alive[place[0]]),
        demands,
        {h: max(float(ledger.cpu_left[h]), 0.0) for h in hosts},
        {h: max(float(ledger.out_left[h]), 0.0) for h in hosts},
        {h: max(float(ledger.in_left[h]), 0.0) for h in hosts},
        {}
        if link is None
        else {(h, m): max(float(link[h, m]), 0.0) for h in hosts for m in hosts if h != m},
        hops=2,
        needed=taken.needed,
    )
    return instance, list(wishes.values())


def as_start(taken: TakenOut, askers: Sequence[Sequence[int]]) -> Rows:
    """What ran, as a solution to start from."""
    host_of = dict(taken.served)
    return Rows(
        [row for row in taken.rows if isinstance(row, Run)],
        [row for row in taken.rows if isinstance(row, Send)],
        {n: host_of[q[0]] for n, q in enumerate(askers) if q[0] in host_of},
    )
