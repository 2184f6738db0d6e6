"""The one interface of placement strategies.

A strategy answers a Problem with an Outcome: a Deployment, and for every query that was not
admitted, why. A strategy that takes queries one by one is made from an `OnlinePlanner`: `online`
gives the planner itself, to those who want to submit, measure or remove query by query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from thalweg.placement.cost import Weights
from thalweg.placement.deployment import Deployment
from thalweg.placement.migrations import HostChange
from thalweg.placement.problem import Problem

REUSE = ("forecast", "pairs", "none")  # as in sqpr/reuse_rules.py


@dataclass(frozen=True, slots=True)
class Options:
    """What a user can set; every strategy takes from it what it knows."""

    weights: Weights = field(default_factory=Weights)
    work_limit: int = 300  # how hard a solver tries per query; its meaning is the strategy's own
    batch: int = 1  # queries that are planned together
    seed: int = 0
    reuse: str | None = None  # a rule of REUSE: which sub-joins others may want; None: its own
    restraint: bool = False  # refuse what needs more CPU than any one host has left

    def __post_init__(self) -> None:
        if self.reuse is not None and self.reuse not in REUSE:
            raise ValueError(f"there is no rule of reuse {self.reuse!r}: {', '.join(REUSE)}")
        if self.work_limit < 0:
            raise ValueError("the work limit can't be negative")
        if self.batch < 1:
            raise ValueError("a batch has at least one query")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a query was not admitted: which resource is short, on which host (None: on all)."""

    query: int
    resource: str  # cpu, bandwidth in, bandwidth out, link, latency, source, work limit
    host: int | None
    detail: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one submission; `changed` lists the hosts that must be told (Algorithm 1)."""

    admitted: tuple[int, ...]
    refusals: tuple[Refusal, ...] = ()
    changed: tuple[int, ...] = ()
    changes: tuple[HostChange, ...] = ()  # what each of them is told
    clock: bool = False  # a search was ended by the clock: another run may decide differently
    how: str = ""  # the way it was found, in the strategy's own words: identical, solver, …


@dataclass(frozen=True, slots=True)
class Outcome:
    deployment: Deployment
    refusals: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()
    bound: float | None = None  # for yardsticks: no deployment admits more queries than this
    problem: Problem | None = None  # what the deployment is for, where it is not what was asked


class OnlinePlanner(Protocol):
    def submit(self, queries: Sequence[int]) -> Decision:
        """Plan these queries (by their number in the problem) on top of what runs."""
        ...

    def deployment(self) -> Deployment: ...


@dataclass(frozen=True, slots=True)
class Strategy:
    name: str
    summary: str
    plan: Callable[[Problem, Options], Outcome]
    online: Callable[[Problem, Options], OnlinePlanner] | None = None


def online_strategy(
    name: str, summary: str, planner: Callable[[Problem, Options], OnlinePlanner]
) -> Strategy:
    """A strategy that submits all queries in order of arrival, in batches as the options say."""

    def plan(problem: Problem, options: Options) -> Outcome:
        chosen = planner(problem, options)
        queries = range(len(problem.queries))
        decisions = [
            chosen.submit(queries[first : first + options.batch])
            for first in range(0, len(queries), options.batch)
        ]
        refusals = tuple(refusal for decision in decisions for refusal in decision.refusals)
        ended = sum(decision.clock for decision in decisions)
        note = f"the clock ended {ended} searches: another run may decide differently"
        return Outcome(chosen.deployment(), refusals, (note,) if ended else ())

    return Strategy(name, summary, plan, planner)
