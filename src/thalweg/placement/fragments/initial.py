"""Where fragments start (COSMOS 6.2.1): at the homes of their streams, with the least traffic.

Filters run at the home of their stream, a join with the faster of its sides (`cutting.py` says so
for one tree; here plans share operators, and the rule is the same at each of them). Where a stream
can be made in several ways, the plan that needs the least CPU is taken. The source ignores loads
here and leaves them to the partners; this strategy does too, but admits only what fits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.placement.abstract import AggregateHost
from thalweg.placement.arrays import NONE
from thalweg.placement.deployment import Deployment
from thalweg.placement.latency import delay_ms
from thalweg.placement.ledger import SLACK, Ledger
from thalweg.placement.migrations import host_changes
from thalweg.placement.problem import Problem
from thalweg.placement.rows import Run, Send
from thalweg.placement.strategy import Decision, Options, Refusal, online_strategy


class Fragments:
    def __init__(self, problem: Problem, options: Options | None = None) -> None:
        self._problem = problem
        self._ledger = Ledger(problem, problem.running)
        self._plans = AggregateHost(problem)
        self._maker: dict[int, int] = {}  # stream -> the operator that was chosen to make it
        if problem.running is not None:
            running = tuple(dict.fromkeys(problem.running.runs[:, 1].tolist()))
            self._plans.run(running)
            self._maker = {int(problem.operators.output[o]): o for o in running}

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
        queries, ledger = self._problem.queries, self._ledger
        wanted, proxy = int(queries.wanted[query]), int(queries.proxy[query])
        _, operators = self._plans.need(wanted)
        makers = {int(self._problem.operators.output[o]): o for o in operators}
        makers = {**makers, **self._maker}
        server = ledger.serving(wanted, proxy)
        if server is None:
            made_at = self._make(wanted, makers)
            server = made_at if proxy == NONE else proxy
            self._bring(made_at, server, wanted)
        ledger.serve(query, server)
        refusal = self._short(query) or self._late(query, server, wanted)
        if refusal is None:
            self._maker = makers
            self._plans.run(operators)
            return None
        ledger.unserve(query)
        ledger.sweep([(server, wanted)])
        return refusal

    def host_of(self, stream: int, makers: dict[int, int]) -> int:
        """Its home, or that of the fragment which the operator that makes it belongs to."""
        home = int(self._problem.streams.home[stream])
        if home != NONE:
            return home
        operator = makers[stream]
        pinned = int(self._problem.operators.pinned[operator])
        if pinned != NONE:
            return pinned
        rate = self._problem.streams.rate_bps
        faster = max(self._problem.operators.inputs[operator].tolist(), key=lambda s: rate[s])
        return self.host_of(faster, makers)

    def _make(self, stream: int, makers: dict[int, int]) -> int:
        host = self.host_of(stream, makers)
        if self._ledger.available[stream, host]:
            return host
        operator = makers[stream]
        for read in dict.fromkeys(self._problem.operators.inputs[operator].tolist()):
            self._bring(self._make(read, makers), host, read)
        self._ledger.add_run(Run(host, operator))
        return host

    def _bring(self, source: int, target: int, stream: int) -> None:
        if not self._ledger.available[stream, target]:
            self._ledger.add_send(Send(source, target, stream))

    def _short(self, query: int) -> Refusal | None:
        hosts, ledger = self._problem.hosts, self._ledger
        for resource, left, capacity in (
            ("cpu", ledger.cpu_left, hosts.cpu),
            ("bandwidth out", ledger.out_left, hosts.out_bps),
            ("bandwidth in", ledger.in_left, hosts.in_bps),
            ("link", ledger.link_left, hosts.link_bps),
        ):
            if left is None or capacity is None:
                continue
            over = np.argwhere(left < -SLACK * np.where(np.isfinite(capacity), capacity, 0.0))
            if len(over):
                place = tuple(over[0].tolist())
                detail = f"its fragments at home need {-left[place]:.4g} more than there is"
                return Refusal(query, resource, place[0], detail)
        return None

    def _late(self, query: int, server: int, wanted: int) -> Refusal | None:
        bound = float(self._problem.queries.latency_bound_ms[query])
        if not np.isfinite(bound):
            return None
        delay = delay_ms(self._ledger, server, wanted)
        if delay <= bound:
            return None
        detail = f"its fragments at home answer after {delay:g} ms, wanted within {bound:g} ms"
        return Refusal(query, "latency", server, detail)


FRAGMENTS = online_strategy(
    "fragments",
    "filters at the home of their stream, joins with the faster side (COSMOS 6.2.1)",
    Fragments,
)
