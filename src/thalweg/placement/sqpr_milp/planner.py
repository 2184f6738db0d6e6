"""SQPR, Algorithm 1 as printed: the solver plans each new query, and replans what it touches.

Streams and operators outside S(q) and O(q) are fixed (`reduction`), model (III.8) is solved with
(IV.9), and the solution stands if the query is in it. The search starts from what runs together
with the plan that SQPR's subset programme finds on top of it, if it finds one (`warm`). Limits are
in nodes of the search tree. Seconds are the source's own limit; where they end a search, another
run may decide differently, and the decision says so (`Decision.clock`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.placement.abstract import AbstractPlans
from thalweg.placement.deployment import Deployment
from thalweg.placement.ledger import Ledger
from thalweg.placement.migrations import host_changes
from thalweg.placement.milp.highs import Answer
from thalweg.placement.milp.instance import Instance
from thalweg.placement.milp.solving import Limits, best_plan
from thalweg.placement.problem import Problem
from thalweg.placement.sqpr.placing import Placing
from thalweg.placement.sqpr_milp.reduction import as_start, put, reduced, take_out
from thalweg.placement.strategy import Decision, Options, Refusal, online_strategy

GAP = 0.01  # of what is weighed against each other once the query is admitted
SECONDS = 60.0

IDENTICAL, SOLVER, REFUSED = "identical", "solver", "refused"


class SqprMilp:
    def __init__(
        self,
        problem: Problem,
        options: Options | None = None,
        *,
        seconds: float = SECONDS,
        warm: bool = True,
    ) -> None:
        if np.isfinite(problem.queries.latency_bound_ms).any():
            raise ValueError("this model knows no latency: choose sqpr for queries with a bound")
        self.options = options or Options()
        self.placing = Placing(Ledger(problem, problem.running), self.options.weights)
        self.limits = Limits(max(self.options.work_limit, 1), GAP, seconds)
        self.warm = warm
        self.asked: list[Answer] = []  # what the solver said, decision by decision

    @property
    def ledger(self) -> Ledger:
        return self.placing.ledger

    def deployment(self) -> Deployment:
        return self.ledger.deployment()

    def submit(self, queries: Sequence[int]) -> Decision:
        """One query; or a batch as one model, with a limit that grows with it (figure 4b)."""
        identical = [q for q in queries if self._served_already(q)]
        new = [q for q in queries if q not in identical]
        admitted, answer = self._solve(new) if new else ([], None)
        self.asked += [answer] if answer is not None else []
        changes = host_changes(*self.ledger.drain())
        refused = tuple(self._refusal(q, answer) for q in new if q not in admitted)
        ways = [IDENTICAL] * bool(identical) + [SOLVER] * bool(admitted)
        return Decision(
            tuple(sorted([*identical, *admitted])),
            refused,
            tuple(c.host for c in changes),
            changes,
            answer is not None and answer.clock,
            ", ".join(ways) or REFUSED,
        )

    def _served_already(self, query: int) -> bool:
        if query in self.ledger.server:
            return True
        wanted = int(self.ledger.problem.queries.wanted[query])
        host = self.ledger.serving(wanted, self.placing.proxy(query))
        if host is not None:
            self.ledger.serve(query, host)
        return host is not None

    def _solve(self, new: list[int]) -> tuple[list[int], Answer]:
        ledger, plans = self.ledger, [self.placing.abstract(q) for q in new]
        if self.warm:
            self._add_by_the_programme(new, plans)
        taken = take_out(ledger, list(dict.fromkeys(s for p in plans for s in p.streams)))
        instance, askers = reduced(ledger, plans, taken, new)
        has_start = len(new) > 1 or any(q == new[0] for q, _ in taken.served)
        start = as_start(taken, askers) if self.warm and has_start else None
        count = len(new)
        limits = Limits(self.limits.nodes * count, self._gap(instance), self.limits.seconds * count)
        answer, rows = best_plan(instance, self.options.weights, limits, start)
        if rows is None:
            put(ledger, taken.rows, taken.served)
        else:
            served = [(q, host) for d, host in rows.serves.items() for q in askers[d]]
            put(ledger, [*rows.runs, *rows.sends], served)
            # Within the gap, a solution may hold what it does not use.
            ledger.sweep(list(ledger.providers))
        return [q for q in new if q in ledger.server], answer

    def _gap(self, instance: Instance) -> float:
        """Of a batch the objective counts queries as well: a share of that would hide the rest."""
        free = sum(d.queries for d in instance.demands if not d.required)
        return self.limits.gap / (1 + self.options.weights.admitted * free)

    def _add_by_the_programme(self, new: list[int], plans: list[AbstractPlans]) -> None:
        """A plan on top of what runs, for those that have one: where the search starts from."""
        for query, abstract in zip(new, plans, strict=True):
            if not self._served_already(query):
                piece = self.placing.fit(query, abstract)
                if piece is not None:
                    self.ledger.add(piece)
                    self.ledger.serve(query, piece.host)

    def _refusal(self, query: int, answer: Answer | None) -> Refusal:
        assert answer is not None
        if answer.proven:
            text = "nothing in S(q) can be planned so that it fits"
            return Refusal(query, "cpu or bandwidth", None, text)
        return Refusal(query, "work limit", None, "the solver found no plan within its limit")


SQPR_MILP = online_strategy("sqpr-milp", "SQPR's Algorithm 1 as printed, by a solver", SqprMilp)
