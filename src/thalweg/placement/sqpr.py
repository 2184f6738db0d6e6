"""SQPR, stream query planning with reuse (source: SQPR, Algorithm 1).

A query that is served already is found at once. Any other is planned by the exact programme
(`programme`) at present prices; where that finds no room, the solver (`milp`) looks for room by
moving what runs in a bounded neighbourhood. What is admitted is never dropped (IV.9), but may move.
Work is bounded by counts, never by the clock, so that the same queries get the same plans.
"""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.placement.abstract import AbstractPlans, abstract_plans
from thalweg.placement.deployment import Deployment, deployment
from thalweg.placement.foresight import Foresight
from thalweg.placement.latency import delay_ms
from thalweg.placement.leaving import lose_host
from thalweg.placement.ledger import Ledger, Piece
from thalweg.placement.migrations import host_changes
from thalweg.placement.prices import prices
from thalweg.placement.problem import Problem
from thalweg.placement.programme import plan_query
from thalweg.placement.refusing import least_cpu, refusal
from thalweg.placement.strategy import Decision, Options, Refusal, online_strategy

IDENTICAL, PROGRAMME, SOLVER, REFUSED = "identical", "programme", "solver", "refused"

# Prices per ms of latency that are tried until a bound is met, in shares of a host's bandwidth.
DELAY_PRICES = (0.0, 1e-3, 1e-1, 1e1)


class Sqpr:
    def __init__(self, problem: Problem, options: Options | None = None) -> None:
        self.problem = problem
        self.options = options or Options()
        self.ledger = Ledger(problem, problem.running)
        self._foresight = Foresight()

    def deployment(self) -> Deployment:
        return self.ledger.deployment()

    # --- queries come and go ----------------------------------------------------------------------

    def submit(self, queries: Sequence[int]) -> Decision:
        """One query, or a batch: of a batch, whichever needs least is always the next."""
        waiting = {q: self._abstract(q) for q in queries}
        for plans in waiting.values():
            self._foresight.see(plans)
        return self._plan(waiting)

    def remove(self, queries: Sequence[int]) -> Decision:
        """These queries end; streams that nobody else needs are freed."""
        for query in queries:
            place = (self.ledger.server[query], int(self.problem.queries.wanted[query]))
            self.ledger.unserve(query)
            self.ledger.sweep([place])
        return self._decision({}, [], "removed")

    # --- the world changes ------------------------------------------------------------------------

    def host_left(self, host: int) -> Decision:
        """Queries that lost their result are planned again on the other hosts, as one batch."""
        lost = lose_host(self.ledger, host)
        return self._plan({q: self._abstract(q) for q in lost})

    def extend(self, problem: Problem) -> None:
        """More hosts, streams, operators or queries; what was there keeps its number."""
        alive = self.ledger.alive
        self.ledger = Ledger(problem, self._deployed_in(problem))
        self.ledger.alive[: len(alive)] = alive
        self.problem = problem

    def _deployed_in(self, problem: Problem) -> Deployment:
        old = self.ledger.deployment()
        serves = dict(self.ledger.server)
        return deployment(
            len(problem.queries), runs=old.runs.tolist(), sends=old.sends.tolist(), serves=serves
        )

    # --- planning ---------------------------------------------------------------------------------

    def _abstract(self, query: int) -> AbstractPlans:
        return abstract_plans(self.problem, int(self.problem.queries.wanted[query]))

    def _plan(self, waiting: dict[int, AbstractPlans]) -> Decision:
        waiting = dict(waiting)
        found: dict[int, str] = {}
        refusals: list[Refusal] = []
        while waiting:
            query = self._next(waiting)
            plans = waiting.pop(query)
            how = self._admit(query, plans)
            if isinstance(how, Refusal):
                refusals.append(how)
            else:
                found[query] = how
        ways = [how for how in (IDENTICAL, PROGRAMME, SOLVER) if how in found.values()]
        return self._decision(found, refusals, ", ".join(ways) or REFUSED)

    def _next(self, waiting: dict[int, AbstractPlans]) -> int:
        if len(waiting) == 1:
            return next(iter(waiting))
        return min(waiting, key=lambda q: (least_cpu(self.ledger, waiting[q]), q))

    def _admit(self, query: int, plans: AbstractPlans) -> str | Refusal:
        proxy = int(self.problem.queries.proxy[query])
        host = self.ledger.serving(plans.wanted, proxy)
        if host is not None:
            late = self._late(query, host)
            if late is None:
                self.ledger.serve(query, host)
            return late or IDENTICAL
        piece = self._programme(query, plans, proxy)
        if isinstance(piece, Piece):
            self.ledger.add(piece)
            self.ledger.serve(query, piece.host)
            return PROGRAMME
        return piece

    def _programme(self, query: int, plans: AbstractPlans, proxy: int) -> Piece | Refusal:
        now = prices(self.ledger, self.options.weights)
        bounded = self.problem.queries.latency_bound_ms[query] < float("inf")
        late: Refusal | None = None
        for delay_price in DELAY_PRICES if bounded else DELAY_PRICES[:1]:
            piece = plan_query(self.ledger, plans, now, self._foresight, proxy, delay_price)
            if piece is None:
                break
            late = self._late(query, piece.host, piece)
            if late is None:
                return piece
        return late or refusal(self.ledger, query, plans, now, self._foresight)

    def _late(self, query: int, host: int, piece: Piece | None = None) -> Refusal | None:
        bound = float(self.problem.queries.latency_bound_ms[query])
        if bound == float("inf"):
            return None
        delay = delay_ms(self.ledger, host, int(self.problem.queries.wanted[query]), piece)
        if delay <= bound:
            return None
        where = self.problem.hosts.names[host]
        detail = f"it would come after {delay:g} ms at {where}; its bound is {bound:g} ms"
        return Refusal(query, "latency", host, detail)

    def _decision(self, found: dict[int, str], refusals: list[Refusal], how: str) -> Decision:
        changes = host_changes(*self.ledger.drain())
        return Decision(
            tuple(sorted(found)), tuple(refusals), tuple(c.host for c in changes), changes, how
        )


SQPR = online_strategy("sqpr", "query by query, reusing what runs, moving what is in the way", Sqpr)
