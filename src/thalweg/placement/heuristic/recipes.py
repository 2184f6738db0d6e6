"""How one host would come by a stream: what it fetches from others, and what it makes itself.

The heuristic planner's greed (SQPR, V-A): what some host has is fetched, the whole sub-query before
its parts; only what nobody can send is made. Hosts that have the same of a query's streams have the
same recipe, so that recipes are made per group of hosts, not per host.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from thalweg.placement.abstract import AbstractPlans
from thalweg.placement.arrays import Floats, Ints
from thalweg.placement.heuristic.listing import Plan
from thalweg.placement.latency import delay_ms
from thalweg.placement.ledger import Ledger
from thalweg.placement.rows import Shortage


@dataclass(frozen=True, slots=True)
class Recipe:
    operators: tuple[int, ...]  # in an order in which they can be started
    fetches: tuple[tuple[int, int], ...]  # (from host, stream)
    delay_ms: float  # of the wanted stream, where it has a bound
    shortage: Shortage | None = None  # on the side of those who should send


def host_groups(ledger: Ledger, plans: AbstractPlans, alike: bool) -> list[Ints]:
    """Hosts that have the same streams, if they are alike otherwise; else each by itself."""
    if not alike or ledger.link_left is not None:
        return [np.array([h], np.int32) for h in range(len(ledger.problem.hosts))]
    groups: dict[bytes, list[int]] = {}
    for host, row in enumerate(np.packbits(ledger.available[list(plans.streams)].T, axis=1)):
        groups.setdefault(row.tobytes(), []).append(host)
    return [np.array(hosts, np.int32) for hosts in groups.values()]


class RecipeMaker:
    """Makes recipes for one query."""

    def __init__(self, ledger: Ledger, plans: AbstractPlans) -> None:
        self._problem = ledger.problem
        self._ledger = ledger
        self._plans = plans
        self._free_out_bps = np.maximum(ledger.out_left, 0.0)
        self._senders: dict[int, tuple[Ints, Floats]] = {}

    def recipe(self, plan: Plan, host: int, bound_ms: float = inf) -> Recipe:
        """For `host`, and for all hosts that have the same streams."""
        maker = {int(self._problem.operators.output[o]): o for o in plan}
        spent: dict[int, float] = {}
        operators: list[int] = []
        fetches: dict[int, int] = {}  # stream -> provider
        worst: Shortage | None = None
        delay = 0.0
        stack, seen = [self._plans.wanted], set[int]()
        while stack:
            stream = stack.pop()
            if stream in seen:
                continue
            seen.add(stream)
            if self._ledger.available[stream, host]:
                if bound_ms < inf:
                    delay = max(delay, delay_ms(self._ledger, host, stream))
                continue
            provider, shortage, arrival = self._provider(stream, host, spent, bound_ms)
            if provider is not None and (shortage is None or stream not in maker):
                fetches[stream] = provider
                spent[provider] = spent.get(provider, 0.0) + self._rate(stream)
                delay = max(delay, arrival)
                if shortage is not None and (worst is None or shortage.share > worst.share):
                    worst = shortage
            else:
                operators.append(maker[stream])
                stack += self._plans.inputs[maker[stream]]
        level = self._problem.level
        return Recipe(
            tuple(sorted(operators, key=lambda o: (level[o], o))),
            tuple((provider, stream) for stream, provider in fetches.items()),
            delay,
            worst,
        )

    def _provider(
        self, stream: int, host: int, spent: dict[int, float], bound_ms: float
    ) -> tuple[int | None, Shortage | None, float]:
        """Of those who have the stream, the one with the most bandwidth to spare on the way."""
        having, free = self._having(stream)
        if not len(having):
            return None, None, inf
        if spent:
            free = np.maximum(free - [spent.get(h, 0.0) for h in having.tolist()], 0.0)
        arrivals, latency = np.zeros(len(having)), self._problem.hosts.latency_ms
        resource, link_left = "bandwidth out", self._ledger.link_left
        if link_left is not None:
            on_link = link_left[having, host]
            on_link = np.maximum(on_link - [spent.get(h, 0.0) for h in having.tolist()], 0.0)
            resource = "link" if on_link.max() < free.max() else resource
            free = np.minimum(free, on_link)
        if latency is not None and bound_ms < inf:
            there = [delay_ms(self._ledger, h, stream) for h in having.tolist()]
            arrivals = there + latency[having, host]
            if (arrivals <= bound_ms).any():
                free = np.where(arrivals <= bound_ms, free, -1.0)
        best = int(np.argmax(free))
        provider, need = int(having[best]), self._rate(stream)
        short = Shortage(resource, provider, need, float(free[best])) if need > free[best] else None
        return provider, short, float(arrivals[best])

    def _having(self, stream: int) -> tuple[Ints, Floats]:
        """Who has the stream, and what they can send: the same while one query is planned."""
        if stream not in self._senders:
            hosts = np.flatnonzero(self._ledger.available[stream]).astype(np.int32)
            self._senders[stream] = hosts, self._free_out_bps[hosts]
        return self._senders[stream]

    def _rate(self, stream: int) -> float:
        return float(self._problem.streams.rate_bps[stream])
