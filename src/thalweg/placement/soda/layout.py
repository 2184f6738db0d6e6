"""Where the operators of the glued templates are, and what that costs each host.

Every stream is made once. Whoever needs it elsewhere gets it once per host, straight from where it
is made, and shares it with all operators there (SQPR, V-B). So a layout is one host per operator,
and all sends follow from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from thalweg.placement.arrays import NONE, Floats
from thalweg.placement.problem import Problem

_ROUNDING = 1e-12
_SMALL = 1e-9


class Layout:
    """Loads follow every change; what is put can be lifted again, which leaves no trace."""

    def __init__(self, problem: Problem) -> None:
        hosts = len(problem.hosts)
        self.problem = problem
        self.host_of: dict[int, int] = {}  # operator -> host
        self.cpu: Floats = np.zeros(hosts)
        self.out_bps: Floats = np.zeros(hosts)
        self.in_bps: Floats = np.zeros(hosts)
        self.link_bps: Floats = np.zeros((hosts, hosts))
        homes: list[int] = problem.streams.home.tolist()
        self._origin = {s: h for s, h in enumerate(homes) if h != NONE}
        self._users: dict[int, dict[int, int]] = {}  # stream -> host -> how many use it there
        self._asked: dict[int, dict[int, int]] = {}  # stream -> proxy or NONE -> queries

    def origin(self, stream: int) -> int:
        """Where the stream is made, or NONE while nobody makes it."""
        return self._origin.get(stream, NONE)

    def at_hand(self, stream: int, host: int) -> bool:
        """Whether one more user at the host costs nothing."""
        return self.origin(stream) == host or host in self._users.get(stream, {})

    def put(self, operator: int, host: int) -> None:
        self._change(operator, host, 1)
        self.host_of[operator] = host

    def lift(self, operator: int) -> int:
        host = self.host_of.pop(operator)
        self._change(operator, host, -1)
        return host

    def serve(self, stream: int, proxy: int, times: int = 1) -> None:
        """Hand a stream out (or, with −1, no more): where it is made, or at a proxy."""
        before = self._handing_out(stream)
        asked = self._asked.setdefault(stream, {})
        asked[proxy] = asked.get(proxy, 0) + times
        if proxy != NONE:
            self._use(stream, proxy, times)
        self._hand_out(stream, before)

    def overload(self) -> float:
        """By which shares hosts and links are beyond their capacities, in all; 0 if it may run."""
        return float(sum(_beyond(used, capacity).sum() for _, used, capacity in self._resources()))

    def worst(self) -> tuple[str, int, float, float] | None:
        """The resource that is furthest beyond its capacity: its name, host, use and capacity."""
        found = None
        furthest = 0.0
        for resource, used, capacity in self._resources():
            beyond = _beyond(used, capacity)
            at = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
            if beyond[at] > furthest:
                furthest = float(beyond[at])
                found = resource, int(at[0]), float(used[at]), float(capacity[at])
        return found

    def _resources(self) -> Iterator[tuple[str, Floats, Floats]]:
        hosts = self.problem.hosts
        yield "cpu", self.cpu, hosts.cpu
        yield "bandwidth out", self.out_bps, hosts.out_bps
        yield "bandwidth in", self.in_bps, hosts.in_bps
        if hosts.link_bps is not None:
            yield "link", self.link_bps, hosts.link_bps

    def sends(self) -> Iterable[tuple[int, int, int]]:
        for stream, users in self._users.items():
            for host in users:
                if host != self._origin[stream]:
                    yield self._origin[stream], host, stream

    def _change(self, operator: int, host: int, sign: int) -> None:
        operators = self.problem.operators
        self.cpu[host] += sign * operators.cpu[operator]
        output = int(operators.output[operator])
        before = self._handing_out(output)
        for stream in operators.inputs[operator].tolist():
            self._use(stream, host, sign)
        if sign > 0:
            self._origin[output] = host
        for user in self._users.get(output, {}):
            self._transfer(host, user, output, sign)
        if sign < 0:
            del self._origin[output]
        self._hand_out(output, before)

    def _handing_out(self, stream: int) -> set[int]:
        """Each host hands a stream out once, however many ask for it there."""
        asked = {proxy for proxy, times in self._asked.get(stream, {}).items() if times}
        return {self.origin(stream) if proxy == NONE else proxy for proxy in asked} - {NONE}

    def _hand_out(self, stream: int, before: set[int]) -> None:
        after = self._handing_out(stream)
        for host in before ^ after:
            self.out_bps[host] += self._rate(stream) if host in after else -self._rate(stream)

    def _use(self, stream: int, host: int, times: int) -> None:
        users = self._users.setdefault(stream, {})
        before = users.get(host, 0)
        users[host] = before + times
        if min(before, before + times) == 0 and stream in self._origin:
            self._transfer(self._origin[stream], host, stream, 1 if times > 0 else -1)
        if users[host] == 0:
            del users[host]

    def _transfer(self, source: int, target: int, stream: int, sign: int) -> None:
        if source != target:
            rate = sign * self._rate(stream)
            self.out_bps[source] += rate
            self.in_bps[target] += rate
            self.link_bps[source, target] += rate

    def _rate(self, stream: int) -> float:
        return float(self.problem.streams.rate_bps[stream])


def _beyond(used: Floats, capacity: Floats) -> Floats:
    """By which share a capacity is exceeded; the last digits of sums are no excess."""
    excess = used - capacity * (1 + _ROUNDING)
    with np.errstate(invalid="ignore"):
        found: Floats = np.where(excess > _SMALL, excess / np.maximum(capacity, _SMALL), 0.0)
    return found
