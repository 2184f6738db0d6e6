"""SODA in epochs: macroQ admits, macroW places, miniW has the last word (SQPR, V-B).

Each submission is an epoch. Templates are fixed and glued, operators may move from epoch to epoch,
and an admitted query stays. What SODA would do next, give queries less than they ask for, does not
apply: demands are fixed here. So a query that passed macroQ and finds no place is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.placement.abstract import abstract_plans
from thalweg.placement.arrays import NONE
from thalweg.placement.deployment import Deployment, deployment
from thalweg.placement.migrations import changes_between
from thalweg.placement.problem import Problem
from thalweg.placement.soda.adopting import adopt
from thalweg.placement.soda.layout import Layout
from thalweg.placement.soda.macro_q import Makers, Template, Totals, given_template
from thalweg.placement.soda.macro_w import GAP, place_all
from thalweg.placement.soda.mini_w import improve, place_one
from thalweg.placement.soda.timing import in_time
from thalweg.placement.strategy import Decision, Options, Refusal, online_strategy

MOVES_PER_NODE = 10  # of the work limit: a node of the search takes as long as some moves


class Soda:
    def __init__(
        self,
        problem: Problem,
        options: Options,
        template: Template = given_template,
        *,
        all_operators: bool = True,
        gap: float = GAP,
    ) -> None:
        self._problem = problem
        self._options = options
        self._template = template
        self._all_operators = all_operators  # macroW moves what runs as well
        self._gap = gap  # at which macroW's search ends
        self._layout = Layout(problem)
        self._maker: dict[int, int] = {}  # stream -> the one operator that makes it
        self._admitted: list[int] = []
        if problem.running is not None:
            self._maker, self._admitted = adopt(self._layout, problem.running)

    def submit(self, queries: Sequence[int]) -> Decision:
        before = self.deployment()
        passed, refusals = self._macro_q(queries)
        if self._macro_w(passed):
            admitted = passed
        else:
            placed = [self._place(query) for query in passed]
            refusals += [r for r in placed if r is not None]
            admitted = [q for q, r in zip(passed, placed, strict=True) if r is None]
        improve(self._layout, self._options.weights, self._tries(len(queries)), self._in_time)
        changes = changes_between(before, self.deployment())
        hosts = tuple(change.host for change in changes)
        return Decision(tuple(admitted), tuple(refusals), hosts, changes)

    def deployment(self) -> Deployment:
        wanted, proxy = self._problem.queries.wanted, self._problem.queries.proxy
        return deployment(
            len(self._problem.queries),
            runs=[(host, operator) for operator, host in self._layout.host_of.items()],
            sends=list(self._layout.sends()),
            serves={
                q: int(proxy[q]) if proxy[q] != NONE else self._layout.origin(int(wanted[q]))
                for q in self._admitted
            },
        )

    def _macro_q(self, queries: Sequence[int]) -> tuple[list[int], list[Refusal]]:
        hosts = self._problem.hosts
        totals = Totals(
            float(np.maximum(hosts.cpu - self._layout.cpu, 0.0).sum()),
            float(np.maximum(hosts.out_bps - self._layout.out_bps, 0.0).sum()),
        )
        glued = dict(self._maker)
        passed, refusals = [], []
        for query in queries:
            added = self._added(query, glued)
            refusal = totals.refusal(self._problem, query, added)
            if refusal is None:
                passed.append(query)
                glued.update(self._outputs(added))
            else:
                refusals.append(refusal)
        return passed, refusals

    def _macro_w(self, queries: Sequence[int]) -> bool:
        """Whether all queries of the epoch were placed at once; if not, nothing has changed."""
        glued, added = dict(self._maker), list[int]()
        for query in queries:
            new = self._added(query, glued)
            glued.update(self._outputs(new))
            added += new
        if not added:
            return False
        for placed in (self._all_placed, self._new_placed):
            hosts = placed(queries, added)
            if hosts is not None and self._try(hosts, glued, queries):
                return True
        return False

    def _all_placed(self, queries: Sequence[int], added: list[int]) -> dict[int, int] | None:
        """A host for every operator, those that run included: SODA plans across all queries."""
        if not self._layout.host_of or not self._all_operators:
            return None  # where all are new, it is the same model
        bare = Layout(self._problem)
        everyone = [*self._admitted, *queries]
        for query in everyone:
            if self._problem.queries.proxy[query] != NONE:
                bare.serve(int(self._problem.queries.wanted[query]), self._proxy(query))
        operators = [*self._layout.host_of, *added]
        return self._placed(bare, everyone, operators)

    def _new_placed(self, queries: Sequence[int], added: list[int]) -> dict[int, int] | None:
        """As before for what runs; hosts for the new operators only."""
        found = self._placed(self._layout, queries, added)
        return None if found is None else {**self._layout.host_of, **found}

    def _placed(
        self, layout: Layout, queries: Sequence[int], operators: list[int]
    ) -> dict[int, int] | None:
        wanted = self._problem.queries.wanted
        served = dict.fromkeys(int(wanted[q]) for q in queries if self._proxy(q) == NONE)
        nodes = self._options.work_limit // MOVES_PER_NODE
        weights = self._options.weights
        return place_all(layout, operators, list(served), weights, nodes, self._gap)

    def _try(self, hosts: dict[int, int], glued: dict[int, int], queries: Sequence[int]) -> bool:
        """Whether this placement may run; if not, everything is as it was."""
        before = dict(self._layout.host_of)
        self._put_all(hosts)
        for query in queries:
            self._admit(query)
        if self._layout.overload() == 0 and self._in_time(self._layout):
            self._maker = glued
            return True
        for query in reversed(queries):
            self._dismiss(query)
        self._put_all(before)
        return False

    def _put_all(self, hosts: dict[int, int]) -> None:
        layout = self._layout
        for operator in list(layout.host_of):
            if layout.host_of[operator] != hosts.get(operator):
                layout.lift(operator)
        for operator, host in hosts.items():
            if operator not in layout.host_of:
                layout.put(operator, host)

    def _proxy(self, query: int) -> int:
        return int(self._problem.queries.proxy[query])

    def _place(self, query: int) -> Refusal | None:
        """miniW's own placement of one query; refused if nothing it tries makes room."""
        layout, weights = self._layout, self._options.weights
        before = dict(layout.host_of)
        added = self._added(query, self._maker)
        for operator in added:
            place_one(layout, operator, weights)
        self._admit(query)
        if layout.overload() > 0:
            improve(layout, weights, self._tries(1), self._in_time)
        if layout.overload() == 0 and self._in_time(layout):
            self._maker.update(self._outputs(added))
            return None
        refusal = self._refusal(query)
        self._dismiss(query)
        self._put_all(before)
        return refusal

    def _refusal(self, query: int) -> Refusal:
        worst = self._layout.worst()
        if worst is None:
            bound = self._problem.queries.latency_bound_ms[query]
            return Refusal(query, "latency", None, f"no placement was found within {bound:g} ms")
        resource, host, used, capacity = worst
        text = f"after all moves, {used:.4g} would be needed of {capacity:.4g}"
        return Refusal(query, resource, host, text)

    def _admit(self, query: int) -> None:
        queries = self._problem.queries
        self._layout.serve(int(queries.wanted[query]), int(queries.proxy[query]))
        self._admitted.append(query)

    def _dismiss(self, query: int) -> None:
        queries = self._problem.queries
        self._layout.serve(int(queries.wanted[query]), int(queries.proxy[query]), -1)
        self._admitted.remove(query)

    def _in_time(self, layout: Layout) -> bool:
        return in_time(layout, self._admitted)

    def _tries(self, queries: int) -> int:
        return self._options.work_limit * queries

    def _added(self, query: int, running: Makers) -> tuple[int, ...]:
        plans = abstract_plans(self._problem, int(self._problem.queries.wanted[query]))
        return self._template(self._problem, plans, running)

    def _outputs(self, operators: Sequence[int]) -> dict[int, int]:
        return {int(self._problem.operators.output[o]): o for o in operators}


SODA = online_strategy(
    "soda", "fixed templates, admitted by totals, then placed (SODA, as SQPR's V-B has it)", Soda
)
