"""SQPR, stream query planning with reuse (source: SQPR, Algorithm 1).

A query that is served already is found at once. Any other is planned by the exact programme
(`programme`) at present prices; where that finds no room, the solver (`milp`) looks for room by
moving what runs in a bounded neighbourhood. What is admitted is never dropped (IV.9), but may move.
Work is bounded by counts, never by the clock, so that the same queries get the same plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from thalweg.placement.abstract import AbstractPlans, abstract_plans
from thalweg.placement.deployment import Deployment, deployment
from thalweg.placement.foresight import Foresight
from thalweg.placement.latency import delay_ms
from thalweg.placement.leaving import lose_host
from thalweg.placement.ledger import Ledger, Piece, Place
from thalweg.placement.making_way import in_the_way, put_back, take_out
from thalweg.placement.migrations import host_changes
from thalweg.placement.milp.highs import Answer
from thalweg.placement.milp.room import Limits, make_room
from thalweg.placement.prices import prices
from thalweg.placement.problem import Problem
from thalweg.placement.programme import plan_query
from thalweg.placement.refusing import least_cpu, nearest_plans, refusal
from thalweg.placement.strategy import Decision, Options, Refusal, online_strategy

IDENTICAL, PROGRAMME, SWAP, SOLVER = "identical", "programme", "swap", "solver"
REFUSED = "refused"
NEAREST = 3  # plans that fail differently: what stands in the way of each may make way
WORK_PER_SWAP = 15  # of the work limit: as much as the solver spends on so many nodes

# Prices per ms of latency that are tried until a bound is met, in shares of a host's bandwidth.
DELAY_PRICES = (0.0, 1e-3, 1e-1, 1e1)


class Sqpr:
    def __init__(self, problem: Problem, options: Options | None = None) -> None:
        self.problem = problem
        self.options = options or Options()
        self.ledger = Ledger(problem, problem.running)
        self.solved: list[Answer] = []
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
        self._unserve(queries)
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
        ways = [how for how in (IDENTICAL, PROGRAMME, SWAP, SOLVER) if how in found.values()]
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
        return self._rearrange(query, plans, proxy, piece)

    def _rearrange(
        self, query: int, plans: AbstractPlans, proxy: int, refused: Refusal
    ) -> str | Refusal:
        """Only where moving things could help: not for lack of sources, time, or CPU in all."""
        if refused.host is None or refused.resource == "latency" or not self.options.work_limit:
            return refused
        now = prices(self.ledger, self.options.weights)
        near = nearest_plans(self.ledger, plans, now, self._foresight, proxy, NEAREST)
        ranked = (in_the_way(self.ledger, self.ledger.shortages(piece)) for piece in near)
        others = [r for turn in zip_longest(*ranked) for r in turn if r is not None]
        others = list(dict.fromkeys(others))
        for places in others[: self.options.work_limit // WORK_PER_SWAP]:
            if self._swap(query, plans, places):
                return SWAP
        if refused.resource == "cpu":
            # Where only CPU is short, the solver packs bins: seconds for a proof, and no query won.
            return refused
        limits = Limits(nodes=self.options.work_limit)
        weights = self.options.weights
        answer = make_room(self.ledger, query, plans, near[0], others, weights, limits)
        self.solved.append(answer)
        return refused if answer.values is None else SOLVER

    def _swap(self, query: int, plans: AbstractPlans, places: tuple[Place, ...]) -> bool:
        """The query goes where others were, and these are planned anew; or all stays as it was."""
        taken = take_out(self.ledger, places)
        placed: list[tuple[int, ...]] = []
        for queries in ((query,), *(queries for _, queries in taken.results)):
            abstract = plans if queries == (query,) else self._abstract(queries[0])
            piece = self._fitting(queries[0], abstract)
            if piece is None:
                break
            self.ledger.add(piece)
            for one in queries:
                self.ledger.serve(one, piece.host)
            placed.append(queries)
        if len(placed) == len(taken.results) + 1:
            return True
        for queries in reversed(placed):
            self._unserve(queries)
        put_back(self.ledger, taken)
        return False

    def _unserve(self, queries: Sequence[int]) -> None:
        for query in queries:
            place = self.ledger.result_of(query)
            self.ledger.unserve(query)
            self.ledger.sweep([place])

    def _fitting(self, query: int, plans: AbstractPlans) -> Piece | None:
        proxy = int(self.problem.queries.proxy[query])
        now = prices(self.ledger, self.options.weights)
        piece = plan_query(self.ledger, plans, now, self._foresight, proxy)
        if piece is None or self._late(query, piece.host, piece) is not None:
            return None
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
