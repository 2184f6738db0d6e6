"""One query on top of what runs: its place, or why there is none."""

from __future__ import annotations

from thalweg.placement.abstract import AbstractPlans, abstract_plans
from thalweg.placement.cost import Weights
from thalweg.placement.latency import delay_ms
from thalweg.placement.ledger import Ledger
from thalweg.placement.rows import Piece
from thalweg.placement.sqpr.prices import Prices, prices
from thalweg.placement.sqpr.refusing import refusal
from thalweg.placement.sqpr.reuse_rules import reuse_rule
from thalweg.placement.sqpr.subset_dp import plan_query
from thalweg.placement.strategy import Refusal

# Prices per ms of latency that are tried until a bound is met, in shares of a host's bandwidth.
DELAY_PRICES = (0.0, 1e-3, 1e-1, 1e1)


class Placing:
    def __init__(self, ledger: Ledger, weights: Weights, reuse: str = "none") -> None:
        self.ledger = ledger
        self.weights = weights
        self.reuse = reuse_rule(reuse)

    def abstract(self, query: int) -> AbstractPlans:
        return abstract_plans(self.ledger.problem, int(self.ledger.problem.queries.wanted[query]))

    def prices(self) -> Prices:
        return prices(self.ledger, self.weights)

    def proxy(self, query: int) -> int:
        return int(self.ledger.problem.queries.proxy[query])

    def bound_ms(self, query: int) -> float:
        return float(self.ledger.problem.queries.latency_bound_ms[query])

    def find(self, query: int, plans: AbstractPlans) -> Piece | Refusal:
        """The cheapest piece by the programme; bounds on latency are met by pricing latency."""
        now = self.prices()
        bounded = self.bound_ms(query) < float("inf")
        late: Refusal | None = None
        for price in DELAY_PRICES if bounded else DELAY_PRICES[:1]:
            piece = plan_query(self.ledger, plans, now, self.reuse, self.proxy(query), price)
            if piece is None:
                break
            late = self.late(query, piece.host, piece)
            if late is None:
                return piece
        return late or refusal(self.ledger, query, plans, now, self.reuse)

    def fit(self, query: int, plans: AbstractPlans) -> Piece | None:
        """As `find`, at its first price and without a reason: for those who try often."""
        piece = plan_query(self.ledger, plans, self.prices(), self.reuse, self.proxy(query))
        if piece is None or self.late(query, piece.host, piece) is not None:
            return None
        return piece

    def late(self, query: int, host: int, piece: Piece | None = None) -> Refusal | None:
        bound = self.bound_ms(query)
        if bound == float("inf"):
            return None
        problem = self.ledger.problem
        delay = delay_ms(self.ledger, host, int(problem.queries.wanted[query]), piece)
        if delay <= bound:
            return None
        where = problem.hosts.names[host]
        detail = f"it would come after {delay:g} ms at {where}; its bound is {bound:g} ms"
        return Refusal(query, "latency", host, detail)

    def release(self, query: int) -> None:
        """The query ends; what nobody else needs is freed."""
        place = self.ledger.result_of(query)
        self.ledger.unserve(query)
        self.ledger.sweep([place])
