"""Room for a query that found none: one result moves, or several by the solver.

What is in the way is found from the nearest plans (`making_way`). First each result in turn is
taken out, the query placed, and the result placed again by the programme. Where bandwidth is short
and that did not help, the solver moves several together (`milp.room`).
"""

from __future__ import annotations

from itertools import zip_longest

from thalweg.placement.abstract import AbstractPlans
from thalweg.placement.milp.highs import Answer
from thalweg.placement.milp.room import Limits, make_room
from thalweg.placement.rows import Place
from thalweg.placement.sqpr.displacement import in_the_way, put_back, take_out
from thalweg.placement.sqpr.placing import Placing
from thalweg.placement.sqpr.refusing import nearest_plans
from thalweg.placement.sqpr.shortages import shortages
from thalweg.placement.strategy import Refusal

SWAP, SOLVER = "swap", "solver"

NEAREST = 3  # plans that fail differently: what stands in the way of each may make way
WORK_PER_SWAP = 30  # of the work limit: a swap costs as much as so many nodes of the solver


def rearrange(
    placing: Placing, query: int, plans: AbstractPlans, refused: Refusal, work_limit: int
) -> tuple[str | Refusal, Answer | None]:
    """How the query was served after all, or why not; and the solver's answer if it was asked."""
    # Nothing to move: sources are gone, it is too far, or all CPU together is too little.
    if refused.host is None or refused.resource == "latency" or not work_limit:
        return refused, None
    ledger, proxy = placing.ledger, placing.proxy(query)
    near = nearest_plans(ledger, plans, placing.prices(), placing.forecast, proxy, NEAREST)
    ranked = (in_the_way(ledger, shortages(ledger, piece)) for piece in near)
    turns = (results for turn in zip_longest(*ranked) for results in turn if results is not None)
    others = list(dict.fromkeys(turns))
    for places in others[: work_limit // WORK_PER_SWAP]:
        if _swap(placing, query, plans, places):
            return SWAP, None
    # Bins of CPU are not for the solver (see there), and it knows no latency.
    if refused.resource == "cpu" or placing.bound_ms(query) < float("inf"):
        return refused, None
    limits = Limits(nodes=work_limit)
    answer = make_room(ledger, query, plans, near[0], others, placing.weights, limits)
    return (refused if answer is None or answer.values is None else SOLVER), answer


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
