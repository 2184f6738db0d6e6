"""What a request's headers say about where new queries run."""

from __future__ import annotations

from math import inf

from starlette.requests import Request

from thalweg.api.problems import BadRequest
from thalweg.runtime.network.placing.deploying import PLANNED
from thalweg.runtime.network.placing.strategies import Strategy
from thalweg.runtime.swap.definitions import SWAP

EAGER = "thalweg-eager"  # results of peers at once, and maybe not all
STRATEGY = "thalweg-strategy"  # where new queries run
MOVABLE = "thalweg-movable"  # all of a query is one fragment
BOUND = "thalweg-bound-ms"  # how late its results may be: a bound on latency
SPREAD = "thalweg-spread"  # over how many nodes, or which, and behind a slash in how many parts
PLAN = "thalweg-plan"  # swap: nodes join, in an order that is left open
ROUTING = "thalweg-routing"  # with it: the policy by which rows choose their way


def strategy_of(request: Request, usual: str) -> Strategy:
    """Raises BadRequest."""
    wanted = request.headers.get(STRATEGY, usual)
    try:
        return Strategy(wanted)
    except ValueError:
        known = ", ".join(Strategy)
        raise BadRequest(
            f"there is no strategy {wanted} for a live network: there are {known}"
        ) from None


def planned_strategy_of(request: Request, usual: str) -> Strategy:
    """One that plans. Raises BadRequest."""
    strategy = strategy_of(request, usual)
    if not strategy.is_planned:
        raise BadRequest(f"{strategy} plans nothing: say --strategy {', '.join(PLANNED)}")
    return strategy


def check_plan(request: Request) -> None:
    """Raises BadRequest."""
    if request.headers[PLAN] != SWAP:
        raise BadRequest(f"there is no plan {request.headers[PLAN]}: there is {SWAP}")
    if {STRATEGY, SPREAD} & set(request.headers):
        raise BadRequest("a query is planned by swap, spread, or placed by a strategy: one of them")


def bound_ms_of(request: Request, strategy: Strategy) -> float | None:
    told = request.headers.get(BOUND)
    if told is None:
        return None
    if not strategy.is_planned:
        raise BadRequest(f"{strategy} keeps no bound on latency: {', '.join(PLANNED)} do")
    try:
        found = float(told)
    except ValueError:
        found = -1.0
    if not 0 < found < inf:
        raise BadRequest(f"a bound on latency is some milliseconds, not {told}")
    return found
