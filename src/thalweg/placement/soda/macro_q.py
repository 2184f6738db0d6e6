"""macroQ: admission by what all hosts have together (SQPR, V-B).

Queries come with fixed demands and rank by arrival. A query is admitted if the CPU and bandwidth of
all hosts together suffice for its template, glued onto those that run. Whether it can be placed is
not asked here; that is what sets SODA apart from SQPR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from thalweg.placement.abstract import AbstractPlans, AggregateHost
from thalweg.placement.problem import Problem
from thalweg.placement.strategy import Refusal

Makers = Mapping[int, int]  # stream -> the one operator that makes it
Template = Callable[[Problem, AbstractPlans, Makers], tuple[int, ...]]


def given_template(problem: Problem, plans: AbstractPlans, running: Makers) -> tuple[int, ...]:
    """A query's operators that don't run yet, inputs first; the user gives the structure.

    Here that is the first maker that the problem lists. Where a stream is already made for someone,
    that maker stands: templates are glued so that each stream is made once (V-B).
    """
    added: dict[int, None] = {}
    stack = [plans.wanted]
    while stack:
        stream = stack.pop()
        if stream not in running and plans.makers[stream] and plans.makers[stream][0] not in added:
            added[plans.makers[stream][0]] = None
            stack += plans.inputs[plans.makers[stream][0]]
    return tuple(o for o in plans.operators if o in added)


def cheapest_template(problem: Problem, plans: AbstractPlans, running: Makers) -> tuple[int, ...]:
    """More than SODA can do: of all structures, the one that needs least beyond what runs.

    It tells how much of SODA's distance to others is due to its templates.
    """
    host = AggregateHost(problem)
    host.has[list(running)] = True
    _, operators = host.need(plans.wanted)
    return tuple(o for o in plans.operators if o in operators)


@dataclass(slots=True)
class Totals:
    """What is left of all hosts' resources, as if they were one."""

    cpu: float
    out_bps: float

    def refusal(self, problem: Problem, query: int, added: tuple[int, ...]) -> Refusal | None:
        cpu = float(problem.operators.cpu[list(added)].sum())
        rate = float(problem.streams.rate_bps[problem.queries.wanted[query]])
        if cpu > self.cpu:
            text = f"its template needs {cpu:.4g}, and all hosts together have {self.cpu:.4g}"
            return Refusal(query, "cpu", None, text)
        if rate > self.out_bps:
            text = f"its result needs {rate:.4g}, and all hosts together have {self.out_bps:.4g}"
            return Refusal(query, "bandwidth out", None, text)
        self.cpu -= cpu
        self.out_bps -= rate
        return None
