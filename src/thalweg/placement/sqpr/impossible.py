"""Queries that no planner could admit, and what the nearest possible problem has more.

A query that is refused may only have come too late. To tell, it is planned by itself on idle hosts:
if it does not fit even there, the plan that exceeds the capacities least says what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.placement.abstract import abstract_plans
from thalweg.placement.ledger import Ledger
from thalweg.placement.problem import Problem
from thalweg.placement.sqpr.planner import Sqpr
from thalweg.placement.sqpr.prices import prices
from thalweg.placement.sqpr.refusing import nearest
from thalweg.placement.sqpr.reuse_rules import NoRule
from thalweg.placement.sqpr.shortages import shortages
from thalweg.placement.strategy import Options, Refusal


@dataclass(frozen=True, slots=True)
class Lack:
    """What would have to be more: of a host's resource, or of a link to `target`."""

    resource: str
    host: int
    has: float
    needs: float
    target: int | None = None


@dataclass(frozen=True, slots=True)
class Impossible:
    query: int
    lacks: tuple[Lack, ...]  # with all of these made up for, it would fit
    detail: str  # in words, where it is not a matter of capacity


def impossible(problem: Problem, query: int, options: Options) -> Impossible | None:
    """None if the query fits by itself on idle hosts."""
    idle = Problem(problem.hosts, problem.streams, problem.operators, problem.queries)
    decision = Sqpr(idle, options).submit([query])
    if decision.admitted:
        return None
    return Impossible(query, _lacks(idle, query, options), _told(decision.refusals))


def _lacks(idle: Problem, query: int, options: Options) -> tuple[Lack, ...]:
    ledger = Ledger(idle)
    plans = abstract_plans(idle, int(idle.queries.wanted[query]))
    now = prices(ledger, options.weights)
    piece = nearest(ledger, plans, now, NoRule(), int(idle.queries.proxy[query]))
    if piece is None:
        return ()
    return tuple(
        Lack(short.resource, short.host, short.left, short.need, short.target)
        for short in shortages(ledger, piece)
    )


def _told(refusals: tuple[Refusal, ...]) -> str:
    return refusals[0].detail if refusals else ""
