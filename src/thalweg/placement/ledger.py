"""The books of a planner: what runs where, who uses it, and what is left of every resource.

A stream at a host has one provider: its home, a run there, or a send to there. It stays as long as
someone uses it: a run, a send onwards, or queries that are served. The ledger is the only mutable
thing that planners share; `deployment()` gives its contents as an answer.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from thalweg.placement.arrays import NONE, ints
from thalweg.placement.deployment import Deployment, deployment
from thalweg.placement.problem import Problem, ProblemError
from thalweg.placement.rows import RESULT, Piece, Place, Run, Send
from thalweg.placement.verify import Rule, verify

# What runs may exceed what it should (rates change), but it can't be impossible.
_UNSOUND = frozenset(
    {
        Rule.REFERENCE,
        Rule.SELF_SEND,
        Rule.PROVIDER,
        Rule.AVAILABILITY,
        Rule.CAUSALITY,
        Rule.DEMAND,
    }
)

SLACK = 1e-11  # of a capacity: far below what `verify` tolerates, far above rounding


class Ledger:
    def __init__(self, problem: Problem, running: Deployment | None = None) -> None:
        hosts, streams = len(problem.hosts), len(problem.streams)
        self.problem = problem
        self.alive = np.ones(hosts, bool)
        self.cpu_left = problem.hosts.cpu.copy()
        self.out_left = problem.hosts.out_bps.copy()
        self.in_left = problem.hosts.in_bps.copy()
        self.link_left = None if problem.hosts.link_bps is None else problem.hosts.link_bps.copy()
        self.available = np.zeros((streams, hosts), bool)
        based = np.flatnonzero(problem.streams.home != NONE)
        self.available[based, problem.streams.home[based]] = True
        self.providers: dict[Place, Run | Send] = {}  # homes left out
        self.users: dict[Place, set[Place]] = {}  # what is made or received from it, or RESULT
        self.results: dict[Place, list[int]] = {}  # -> the queries that are served there
        self.server: dict[int, int] = {}  # query -> host
        self._journal: dict[Run | Send, int] = {}  # net changes since the last drain
        self._anywhere: dict[int, int] = {}  # stream -> its server for queries without a proxy
        if running is not None:
            self._take(running)
            self.drain()

    def _take(self, running: Deployment) -> None:
        if running.wants is not None:
            raise ProblemError(
                "$.running", "where the overlay routes, nothing can be added by hosts"
            )
        broken = [v for v in verify(self.problem, running) if v.rule in _UNSOUND]
        if broken:
            raise ProblemError("$.running", f"it can't be running: {broken[0]}")
        for host, operator in running.runs.tolist():
            self.add_run(Run(host, operator))
        for source, target, stream in running.sends.tolist():
            self.add_send(Send(source, target, stream))
        for query in np.flatnonzero(running.serves != NONE).tolist():
            self.serve(query, int(running.serves[query]))

    # --- what is there ------------------------------------------------------------------------

    def serving(self, stream: int, proxy: int = NONE) -> int | None:
        """The host that serves this stream already (at the proxy, if there is one)."""
        if proxy != NONE:
            return proxy if (proxy, stream) in self.results else None
        return self._anywhere.get(stream)

    def deployment(self) -> Deployment:
        serves = np.full(len(self.problem.queries), NONE, np.int32)
        for query, host in self.server.items():
            serves[query] = host
        rows = self.providers.values()
        return deployment(
            len(self.problem.queries),
            runs=[row for row in rows if isinstance(row, Run)],
            sends=[row for row in rows if isinstance(row, Send)],
            serves=ints(serves),
        )

    # --- changes ------------------------------------------------------------------------------

    def add(self, piece: Piece) -> None:
        for run in piece.runs:
            self.add_run(run)
        for send in piece.sends:
            self.add_send(send)

    def add_run(self, run: Run) -> None:
        output = int(self.problem.operators.output[run.operator])
        self._provide(run.host, output, run)
        self.cpu_left[run.host] -= self.problem.operators.cpu[run.operator]
        self._use(run)

    def add_send(self, send: Send) -> None:
        self._provide(send.target, send.stream, send)
        self._carry(send, 1)
        self._use(send)

    def remove(self, row: Run | Send) -> None:
        """Take a run or a send away, whoever uses it; its own inputs are used once less."""
        if isinstance(row, Run):
            output = int(self.problem.operators.output[row.operator])
            self._unprovide(row.host, output, row)
            self.cpu_left[row.host] += self.problem.operators.cpu[row.operator]
        else:
            self._unprovide(row.target, row.stream, row)
            self._carry(row, -1)
        for place in self.inputs_of(row):
            self._drop_user(place, self.place_of(row))

    def serve(self, query: int, host: int) -> None:
        stream = int(self.problem.queries.wanted[query])
        if (host, stream) not in self.results:
            self.results[host, stream] = []
            self.out_left[host] -= self.problem.streams.rate_bps[stream]
            self.users.setdefault((host, stream), set()).add(RESULT)
        self.results[host, stream].append(query)
        self.server[query] = host
        if self.problem.queries.proxy[query] == NONE:
            self._anywhere[stream] = host

    def unserve(self, query: int) -> None:
        host, stream = self.server.pop(query), int(self.problem.queries.wanted[query])
        self.results[host, stream].remove(query)
        proxies = self.problem.queries.proxy
        if all(proxies[q] != NONE for q in self.results[host, stream]):
            self._anywhere.pop(stream, None)
        if not self.results[host, stream]:
            del self.results[host, stream]
            self.out_left[host] += self.problem.streams.rate_bps[stream]
            self._drop_user((host, stream), RESULT)

    def sweep(self, places: Iterable[Place]) -> list[Run | Send]:
        """Free what nobody needs, starting from these places and going upstream."""
        freed: list[Run | Send] = []
        stack = list(places)
        while stack:
            place = stack.pop()
            row = self.providers.get(place)
            if row is None or place in self.users:
                continue
            self.remove(row)
            freed.append(row)
            stack += self.inputs_of(row)
        return freed

    def inputs_of(self, row: Run | Send) -> list[Place]:
        if isinstance(row, Send):
            return [(row.source, row.stream)]
        inputs = dict.fromkeys(self.problem.operators.inputs[row.operator].tolist())
        return [(row.host, stream) for stream in inputs]

    def result_of(self, query: int) -> Place:
        return self.server[query], int(self.problem.queries.wanted[query])

    def upstream(self, place: Place) -> list[Place]:
        """This place and all that it is made or received from; homes left out."""
        found: dict[Place, None] = {}
        stack = [place]
        while stack:
            place = stack.pop()
            row = self.providers.get(place)
            if row is not None and place not in found:
                found[place] = None
                stack += self.inputs_of(row)
        return list(found)

    def place_of(self, row: Run | Send) -> Place:
        """What the row provides."""
        if isinstance(row, Send):
            return row.target, row.stream
        return row.host, int(self.problem.operators.output[row.operator])

    def drain(self) -> tuple[list[Run | Send], list[Run | Send]]:
        """The rows that are new and those that are gone since the last call."""
        journal, self._journal = self._journal, {}
        added = [row for row, change in journal.items() if change > 0]
        return added, [row for row, change in journal.items() if change < 0]

    def _note(self, row: Run | Send, change: int) -> None:
        self._journal[row] = self._journal.get(row, 0) + change

    def _provide(self, host: int, stream: int, row: Run | Send) -> None:
        assert not self.available[stream, host], "a stream reaches a host in one way only"
        self.providers[host, stream] = row
        self._note(row, 1)
        self.available[stream, host] = True

    def _unprovide(self, host: int, stream: int, row: Run | Send) -> None:
        taken = self.providers.pop((host, stream))
        assert taken == row, "what is taken away was there"
        self._note(row, -1)
        self.available[stream, host] = False

    def _carry(self, send: Send, sign: int) -> None:
        rate = sign * self.problem.streams.rate_bps[send.stream]
        self.out_left[send.source] -= rate
        self.in_left[send.target] -= rate
        if self.link_left is not None:
            self.link_left[send.source, send.target] -= rate

    def _use(self, row: Run | Send) -> None:
        for place in self.inputs_of(row):
            self.users.setdefault(place, set()).add(self.place_of(row))

    def _drop_user(self, place: Place, user: Place) -> None:
        self.users[place].remove(user)
        if not self.users[place]:
            del self.users[place]
