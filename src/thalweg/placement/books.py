"""What is where and what is used, as a planner adds to a deployment step by step."""

from __future__ import annotations

from math import inf

import numpy as np

from thalweg.placement.arrays import NONE, Flags, Floats, Ints
from thalweg.placement.deployment import Deployment, deployment
from thalweg.placement.problem import Problem


class Books:
    """Starts from what runs; nothing that is entered is ever taken out."""

    def __init__(self, problem: Problem) -> None:
        hosts, streams = len(problem.hosts), len(problem.streams)
        self._problem = problem
        based = np.flatnonzero(problem.streams.home != NONE)
        self.has: Flags = np.zeros((hosts, streams), bool)
        self.has[problem.streams.home[based], based] = True
        self.delay_ms: Floats = np.where(self.has, 0.0, inf)
        self.used_cpu: Floats = np.zeros(hosts)
        self.used_out_bps: Floats = np.zeros(hosts)
        self.used_in_bps: Floats = np.zeros(hosts)
        self.used_link_bps: Floats = np.zeros((hosts, hosts))
        self.serves: Ints = np.full(len(problem.queries), NONE, np.int32)
        self._server: dict[int, int] = {}  # stream -> who hands it out where nobody has a proxy
        self._handed_out: set[tuple[int, int]] = set()  # (host, stream)
        self._runs: list[tuple[int, int]] = []
        self._sends: list[tuple[int, int, int]] = []
        if problem.running is not None:
            self._enter(problem.running)

    def run(self, host: int, operator: int) -> None:
        operators = self._problem.operators
        inputs, output = operators.inputs[operator], operators.output[operator]
        assert self.has[host, inputs].all(), "an operator needs its inputs"
        assert not self.has[host, output], "a stream has one provider"
        self.used_cpu[host] += operators.cpu[operator]
        self.has[host, output] = True
        self.delay_ms[host, output] = self.delay_ms[host, inputs].max()
        self._runs.append((host, operator))

    def send(self, source: int, target: int, stream: int) -> None:
        assert self.has[source, stream], "what is sent is there"
        assert not self.has[target, stream], "a stream has one provider"
        rate = self._problem.streams.rate_bps[stream]
        self.used_out_bps[source] += rate
        self.used_in_bps[target] += rate
        self.used_link_bps[source, target] += rate
        self.has[target, stream] = True
        latency = self._problem.hosts.latency_ms
        way = 0.0 if latency is None else latency[source, target]
        self.delay_ms[target, stream] = self.delay_ms[source, stream] + way
        self._sends.append((source, target, stream))

    def serve(self, query: int, host: int) -> None:
        stream = int(self._problem.queries.wanted[query])
        assert self.has[host, stream], "what is served is there"
        self.used_out_bps[host] += self.serving_bps(host, stream)
        self._handed_out.add((host, stream))
        if self._problem.queries.proxy[query] == NONE:
            self._server[stream] = host
        self.serves[query] = host

    def serving_bps(self, host: int, stream: int) -> float:
        """A host hands a stream out once, however many ask for it (II-B)."""
        again = (host, stream) in self._handed_out
        return 0.0 if again else float(self._problem.streams.rate_bps[stream])

    def server(self, stream: int) -> int:
        """Who serves the stream to queries without a proxy, or NONE."""
        return self._server.get(stream, NONE)

    @property
    def free_cpu(self) -> Floats:
        return _left(self._problem.hosts.cpu, self.used_cpu)

    @property
    def free_out_bps(self) -> Floats:
        return _left(self._problem.hosts.out_bps, self.used_out_bps)

    @property
    def free_in_bps(self) -> Floats:
        return _left(self._problem.hosts.in_bps, self.used_in_bps)

    def deployment(self) -> Deployment:
        return deployment(
            len(self.serves), runs=self._runs, sends=self._sends, serves=self.serves.copy()
        )

    def _enter(self, running: Deployment) -> None:
        """In an order in which everything follows what it needs, so that delays come out right."""
        runs, sends = (
            set(map(tuple, running.runs.tolist())),
            set(map(tuple, running.sends.tolist())),
        )
        inputs = self._problem.operators.inputs
        while runs or sends:
            able = {(h, o) for h, o in runs if self.has[h, inputs[o]].all()}
            ready = {(h, m, s) for h, m, s in sends if self.has[h, s]}
            if not able and not ready:
                raise ValueError("what runs does not follow from base streams")
            for host, operator in sorted(able):
                self.run(host, operator)
            for source, target, stream in sorted(ready):
                self.send(source, target, stream)
            runs, sends = runs - able, sends - ready
        for query in np.flatnonzero(running.serves != NONE).tolist():
            self.serve(query, int(running.serves[query]))


def _left(capacity: Floats, used: Floats) -> Floats:
    """Never below nothing: sums of floats may exceed a capacity by their last digit."""
    left: Floats = np.maximum(capacity - used, 0.0)
    return left
