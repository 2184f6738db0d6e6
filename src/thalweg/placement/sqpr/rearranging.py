"""Room for a query that found none: another result moves (SQPR, IV-A: admitted queries may).

What is in the way is found from the nearest plans (`displacement`). Each result in turn is taken
out, the query placed, and the result placed again by the programme. A solver over several results
and hosts stood behind this once: it was asked where bandwidth was short, and never found room that
moving one result had not. Nor does Algorithm 1's own model (`sqpr_milp`), which may replan S(q)
only (docs/experiments/sqpr-milp.md).
"""

from __future__ import annotations

from itertools import zip_longest

from thalweg.placement.abstract import AbstractPlans
from thalweg.placement.rows import Place
from thalweg.placement.sqpr.displacement import in_the_way, put_back, take_out
from thalweg.placement.sqpr.placing import Placing
from thalweg.placement.sqpr.refusing import nearest_plans
from thalweg.placement.sqpr.shortages import shortages
from thalweg.placement.strategy import Refusal

NEAREST = 3  # plans that fail differently: what stands in the way of each may make way
WORK_PER_SWAP = 30  # of the work limit, whose unit is a node of a solver's search


def rearrange(
    placing: Placing, query: int, plans: AbstractPlans, refused: Refusal, work_limit: int
) -> bool:
    """Whether the query is served after all; if not, everything is as it was."""
    # Nothing to move: sources are gone, it is too far, or all CPU together is too little.
    if refused.host is None or refused.resource == "latency" or not work_limit:
        return False
    ledger, proxy = placing.ledger, placing.proxy(query)
    near = nearest_plans(ledger, plans, placing.prices(), placing.reuse, proxy, NEAREST)
    ranked = (in_the_way(ledger, shortages(ledger, piece)) for piece in near)
    turns = (results for turn in zip_longest(*ranked) for results in turn if results is not None)
    others = list(dict.fromkeys(turns))[: work_limit // WORK_PER_SWAP]
    return any(_swap(placing, query, plans, places) for places in others)


def _swap(placing: Placing, query: int, plans: AbstractPlans, places: tuple[Place, ...]) -> bool:
    """The query goes where others were, and these are planned anew; or all stays as it was."""
    ledger = placing.ledger
    taken = take_out(ledger, places)
    waiting = [(query,), *(queries for _, queries in taken.results)]
    placed: list[int] = []
    for queries in waiting:
        abstract = plans if queries == (query,) else placing.abstract(queries[0])
        piece = placing.fit(queries[0], abstract)
        if piece is None:
            break
        ledger.add(piece)
        for one in queries:
            ledger.serve(one, piece.host)
            placed.append(one)
    if len(placed) == sum(map(len, waiting)):
        return True
    for one in reversed(placed):
        placing.release(one)
    put_back(ledger, taken)
    return False
