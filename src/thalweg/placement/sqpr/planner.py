"""SQPR, stream query planning with reuse (source: SQPR, Algorithm 1), without its solver.

A query that is served already is found at once. Any other is planned by the exact programme
(`programme`) at present prices; where that finds no room, what is in the way is moved
(`rearranging`). What is admitted is never dropped (IV.9), but may move. Work is bounded by counts,
never by the clock, so that the same queries get the same plans.
"""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.placement.abstract import AbstractPlans
from thalweg.placement.deployment import Deployment, deployment
from thalweg.placement.ledger import Ledger
from thalweg.placement.migrations import host_changes
from thalweg.placement.problem import Problem
from thalweg.placement.sqpr.host_loss import lose_host
from thalweg.placement.sqpr.placing import Placing
from thalweg.placement.sqpr.rearranging import rearrange
from thalweg.placement.sqpr.refusing import least_cpu
from thalweg.placement.sqpr.restraint import too_large
from thalweg.placement.strategy import Decision, Options, Refusal, online_strategy

IDENTICAL, PROGRAMME, SWAP, REFUSED = "identical", "programme", "swap", "refused"


class Sqpr:
    def __init__(self, problem: Problem, options: Options | None = None) -> None:
        self.options = options or Options()
        reuse = self.options.reuse or "forecast"
        self.placing = Placing(Ledger(problem, problem.running), self.options.weights, reuse)

    @property
    def ledger(self) -> Ledger:
        return self.placing.ledger

    def deployment(self) -> Deployment:
        return self.ledger.deployment()

    # --- queries come and go ----------------------------------------------------------------------

    def submit(self, queries: Sequence[int]) -> Decision:
        """One query, or a batch: of a batch, whichever needs least is always the next."""
        waiting = {q: self.placing.abstract(q) for q in queries}
        for plans in waiting.values():
            self.placing.reuse.see(plans)
        return self._plan(waiting)

    def remove(self, queries: Sequence[int]) -> Decision:
        """These queries end; streams that nobody else needs are freed."""
        for query in queries:
            if query not in self.ledger.server:
                raise ValueError(f"query {query} is not served, and so can't be removed")
            self.placing.release(query)
        return self._decision({}, [], "removed")

    # --- the world changes ------------------------------------------------------------------------

    def host_left(self, host: int) -> Decision:
        """Queries that lost their result are planned again on the other hosts, as one batch."""
        lost = lose_host(self.ledger, host)
        return self._plan({q: self.placing.abstract(q) for q in lost})

    def extend(self, problem: Problem) -> None:
        """More hosts, streams, operators or queries; what was there keeps its number."""
        old, alive = self.ledger.deployment(), self.ledger.alive
        running = deployment(
            len(problem.queries),
            runs=old.runs.tolist(),
            sends=old.sends.tolist(),
            serves=self.ledger.server,
        )
        self.placing.ledger = Ledger(problem, running)
        self.ledger.alive[: len(alive)] = alive

    # --- planning ---------------------------------------------------------------------------------

    def _plan(self, waiting: dict[int, AbstractPlans]) -> Decision:
        waiting = dict(waiting)
        found: dict[int, str] = {}
        refusals: list[Refusal] = []
        while waiting:
            query = self._next(waiting)
            how = self._admit(query, waiting.pop(query))
            if isinstance(how, Refusal):
                refusals.append(how)
            else:
                found[query] = how
        ways = [how for how in (IDENTICAL, PROGRAMME, SWAP) if how in found.values()]
        return self._decision(found, refusals, ", ".join(ways) or REFUSED)

    def _next(self, waiting: dict[int, AbstractPlans]) -> int:
        if len(waiting) == 1:
            return next(iter(waiting))
        return min(waiting, key=lambda q: (least_cpu(self.ledger, waiting[q]), q))

    def _admit(self, query: int, plans: AbstractPlans) -> str | Refusal:
        if query in self.ledger.server:
            return IDENTICAL  # with itself: it runs already
        host = self.ledger.serving(plans.wanted, self.placing.proxy(query))
        if host is not None:
            late = self.placing.late(query, host)
            if late is None:
                self.ledger.serve(query, host)
            return late or IDENTICAL
        piece = self.placing.find(query, plans)
        if isinstance(piece, Refusal):
            moved = rearrange(self.placing, query, plans, piece, self.options.work_limit)
            return SWAP if moved else piece
        held_back = too_large(self.ledger, query, piece) if self.options.restraint else None
        if held_back is not None:
            return held_back
        self.ledger.add(piece)
        self.ledger.serve(query, piece.host)
        return PROGRAMME

    def _decision(self, found: dict[int, str], refusals: list[Refusal], how: str) -> Decision:
        changes = host_changes(*self.ledger.drain())
        return Decision(
            tuple(sorted(found)),
            tuple(refusals),
            tuple(c.host for c in changes),
            changes,
            how=how,
        )


SQPR = online_strategy("sqpr", "query by query, reusing what runs, moving what is in the way", Sqpr)
