"""The heuristic planner of SQPR's evaluation (section V-A).

For each abstract plan of a query and each host, it tries to run the plan there, on that one host,
with what other hosts can send it (`recipes`). Of all candidates that fit, the best by the weighted
objective is taken (`heuristic_search`). Earlier decisions stand, and a query's new operators never
spread over several hosts.
"""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.placement.arrays import NONE
from thalweg.placement.books import Books
from thalweg.placement.deployment import Deployment
from thalweg.placement.heuristic_search import Search
from thalweg.placement.listing import TooManyPlans
from thalweg.placement.problem import Problem
from thalweg.placement.recipes import Shortage
from thalweg.placement.strategy import Decision, Options, Refusal, online_strategy


class Heuristic:
    def __init__(self, problem: Problem, options: Options) -> None:
        self._problem = problem
        self._weights = options.weights
        self._books = Books(problem)

    def submit(self, queries: Sequence[int]) -> Decision:
        admitted: list[int] = []
        refusals: list[Refusal] = []
        changed: set[int] = set()
        for query in queries:
            answer = self._submit(query, changed)
            if answer is None:
                admitted.append(query)
            else:
                refusals.append(answer)
        return Decision(tuple(admitted), tuple(refusals), tuple(sorted(changed)))

    def deployment(self) -> Deployment:
        return self._books.deployment()

    def _submit(self, query: int, changed: set[int]) -> Refusal | None:
        queries = self._problem.queries
        wanted, proxy = int(queries.wanted[query]), int(queries.proxy[query])
        if proxy == NONE and self._books.server(wanted) != NONE:
            server = self._books.server(wanted)
            delay, bound = self._books.delay_ms[server, wanted], queries.latency_bound_ms[query]
            if delay > bound:
                detail = f"it is served after {delay:g} ms already, and wanted within {bound:g} ms"
                return Refusal(query, "latency", server, detail)
            self._books.serve(query, server)
            return None
        try:
            best, nearest = Search(self._problem, self._books, self._weights, query).run()
        except TooManyPlans as error:
            return Refusal(query, "work limit", None, str(error))
        if best is None:
            return self._refusal(query, nearest)
        for source, stream in best.recipe.fetches:
            self._books.send(source, best.host, stream)
            changed.add(source)
        for operator in best.recipe.operators:
            self._books.run(best.host, operator)
        changed.add(best.host)
        if proxy not in (NONE, best.host):
            self._books.send(best.host, proxy, wanted)
            changed.add(proxy)
        self._books.serve(query, best.host if proxy == NONE else proxy)
        return None

    def _refusal(self, query: int, nearest: Shortage | None) -> Refusal:
        if nearest is None:
            return Refusal(query, "pin", None, "no single host may run a whole plan of it")
        detail = f"the nearest plan needs {nearest.need:.4g} where {nearest.free:.4g} is free"
        return Refusal(query, nearest.resource, nearest.host, detail)


HEURISTIC = online_strategy(
    "heuristic", "each query whole on the one host where it costs least (SQPR, V-A)", Heuristic
)
