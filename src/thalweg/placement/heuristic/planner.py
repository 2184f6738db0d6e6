"""The heuristic planner of SQPR's evaluation (section V-A).

For each abstract plan of a query and each host, it tries to run the plan there, on that one host,
with what other hosts can send it (`recipes`). Of all candidates that fit, the best by the weighted
objective is taken (`heuristic_search`). Earlier decisions stand, and a query's new operators never
spread over several hosts. The source's planner looks at the objective alone; a rule of reuse
(`Options.reuse`) favours sub-joins that others may want, as SQPR's does.
"""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.placement.arrays import NONE
from thalweg.placement.deployment import Deployment
from thalweg.placement.heuristic.listing import TooManyPlans
from thalweg.placement.heuristic.search import Search
from thalweg.placement.latency import delay_ms
from thalweg.placement.ledger import Ledger
from thalweg.placement.migrations import host_changes
from thalweg.placement.problem import Problem
from thalweg.placement.rows import Run, Send, Shortage
from thalweg.placement.sqpr.reuse_rules import reuse_rule
from thalweg.placement.strategy import Decision, Options, Refusal, online_strategy


class Heuristic:
    def __init__(self, problem: Problem, options: Options) -> None:
        self._problem = problem
        self._weights = options.weights
        self._ledger = Ledger(problem, problem.running)
        self._reuse = reuse_rule(options.reuse or "none")

    def submit(self, queries: Sequence[int]) -> Decision:
        answers = {query: self._submit(query) for query in queries}
        changes = host_changes(*self._ledger.drain())
        return Decision(
            tuple(query for query, refusal in answers.items() if refusal is None),
            tuple(refusal for refusal in answers.values() if refusal is not None),
            tuple(change.host for change in changes),
            changes,
        )

    def deployment(self) -> Deployment:
        return self._ledger.deployment()

    def _submit(self, query: int) -> Refusal | None:
        queries = self._problem.queries
        wanted, proxy = int(queries.wanted[query]), int(queries.proxy[query])
        server = self._ledger.serving(wanted, proxy)
        if server is not None:
            return self._serve_as_well(query, server)
        try:
            best, nearest = Search(self._ledger, self._weights, query, self._reuse).run()
        except TooManyPlans as error:
            return Refusal(query, "work limit", None, str(error))
        if best is None:
            return self._refusal(query, nearest)
        for source, stream in best.recipe.fetches:
            self._ledger.add_send(Send(source, best.host, stream))
        for operator in best.recipe.operators:
            self._ledger.add_run(Run(best.host, operator))
        if proxy not in (NONE, best.host):
            self._ledger.add_send(Send(best.host, proxy, wanted))
        self._ledger.serve(query, best.host if proxy == NONE else proxy)
        return None

    def _serve_as_well(self, query: int, server: int) -> Refusal | None:
        """The result is handed out already; only its delay may be too long for this query."""
        queries = self._problem.queries
        delay = delay_ms(self._ledger, server, int(queries.wanted[query]))
        bound = float(queries.latency_bound_ms[query])
        if delay > bound:
            detail = f"it is served after {delay:g} ms already, and wanted within {bound:g} ms"
            return Refusal(query, "latency", server, detail)
        self._ledger.serve(query, server)
        return None

    def _refusal(self, query: int, nearest: Shortage | None) -> Refusal:
        if nearest is None:
            return Refusal(query, "pin", None, "no single host may run a whole plan of it")
        detail = f"the nearest plan needs {nearest.need:.4g} where {nearest.left:.4g} is free"
        return Refusal(query, nearest.resource, nearest.host, detail)


HEURISTIC = online_strategy(
    "heuristic", "each query whole on the one host where it costs least (SQPR, V-A)", Heuristic
)
