"""Tuples through the plan (A ⋈ B) ⋈ (C ⋈ D), second by second, with the alerts protocol in charge.

The plan runs once per key range (DHTJoin indexes tuples by value). Each operator of each range is
an operator of the `alerts` protocol at a host of its own, in the simulator; each stream has one
reception host. What the protocol says is active is what sends. Tuples are counted per value and
second instead of being simulated one by one, which gives the same counts.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from thalweg.overlay.alerts.messages import Install, Operator, Resumed, SetAble, Suspended, Want
from thalweg.overlay.alerts.protocol import Alerts
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.networks.uniform import UniformNetwork
from thalweg.sim.world import World

STREAMS = ("A", "B", "C", "D")
JOINS = {"AB": ("A", "B"), "CD": ("C", "D")}
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Plan:
    rate: int = 60  # tuples a second of each stream
    window_s: int = 50
    values: int = 1000
    zipf: float = 0.9
    ranges: int = 64
    lease_s: float = 15.0
    run_s: int = 300
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """What stops, and when; either a stream's source, or a share of the hosts of C ⋈ D."""

    from_s: int
    to_s: int
    stream: str | None = None
    share: float = 0.0


@dataclass(slots=True)
class Totals:
    base: int = 0  # tuples indexed
    intermediate: int = 0  # results of AB and CD sent on
    alerts: int = 0  # messages of the protocol itself
    results: int = 0

    @property
    def messages(self) -> int:
        return self.base + self.intermediate + self.alerts


def flow(plan: Plan, failure: Failure, *, alerts: bool, exact: bool = False) -> Totals:
    """One run. `exact`: no alert before a silent stream's last tuple has left the window, and what
    was held back is sent when production resumes; so no result is lost."""
    control = _Control(plan) if alerts else None
    run = _Run(plan, failure, control, exact)
    for second in range(plan.run_s):
        run.second(second)
    if control is not None:
        run.totals.alerts = sum(control.world.sent.values())
    return run.totals


class _Control:
    """The alerts protocol at all hosts, and which operators it lets be active."""

    def __init__(self, plan: Plan) -> None:
        self.active: dict[str, Counts] = {
            name: np.zeros(plan.ranges, dtype=np.int64) for name in (*STREAMS, *JOINS)
        }
        lease_us = int(plan.lease_s * SECOND_US)
        self.world = World(
            lambda address: Stack([Alerts(lease_us)]),
            seed=plan.seed,
            network=UniformNetwork(100_000),
            on_deliver=self._delivered,
        )
        for stream in STREAMS:
            self.world.start(stream)
            for i in range(plan.ranges):
                self._install(stream, Operator(f"{stream}.{i}"))
        for i in range(plan.ranges):
            for join, inputs in JOINS.items():
                self.world.start(f"{join}{i}")
                of = tuple((f"{s}.{i}", s) for s in inputs)
                self._install(f"{join}{i}", Operator(f"{join}.{i}", of))
            self.world.start(f"top{i}")
            of = tuple((f"{join}.{i}", f"{join}{i}") for join in JOINS)
            self._install(f"top{i}", Operator(f"top.{i}", of))
            self.world.call(f"top{i}", "alerts", Want(f"top.{i}", "q"))
        self.world.run_for(2 * SECOND_US)
        self.world.sent.clear()

    def _install(self, host: str, operator: Operator) -> None:
        self.world.call(host, "alerts", Install(operator))

    def _delivered(self, host: Host, protocol: str, value: object) -> None:
        if isinstance(value, Resumed | Suspended):
            name, _, index = value.operator.partition(".")
            if name in self.active:
                self.active[name][int(index)] = isinstance(value, Resumed)

    def set_stream(self, stream: str, ranges: int, able: bool) -> None:
        for i in range(ranges):
            self.world.call(stream, "alerts", SetAble(f"{stream}.{i}", able))


class _Run:
    def __init__(self, plan: Plan, failure: Failure, control: _Control | None, exact: bool) -> None:
        self.plan, self.failure, self.control, self.exact = plan, failure, control, exact
        self.totals = Totals()
        rng = np.random.default_rng([plan.seed, 1])
        weights = np.arange(1, plan.values + 1) ** -plan.zipf
        self._odds = weights / weights.sum()
        self._rng = rng
        self._range_of = rng.permutation(plan.values) % plan.ranges
        failed = rng.permutation(plan.ranges)[: round(failure.share * plan.ranges)]
        self._failed = np.isin(np.arange(plan.ranges), failed)
        nothing = np.zeros(plan.values, dtype=np.int64)
        self._sent = {s: deque([nothing] * plan.window_s) for s in STREAMS}  # at the joins
        self._kept = {s: deque([nothing] * plan.window_s) for s in STREAMS}  # at the sources
        self._window = {s: nothing.copy() for s in STREAMS}
        self._was_on = {s: np.ones(plan.values, dtype=bool) for s in STREAMS}

    def second(self, now: int) -> None:
        self._happen(now)
        if self.control is not None:
            self.control.world.run_for(SECOND_US)
        failure, window = self.failure, self._window
        is_failing = failure.from_s <= now < failure.to_s
        new: dict[str, Counts] = {}
        for stream in STREAMS:
            arrived = self._rng.multinomial(self.plan.rate, self._odds)
            if stream == failure.stream and is_failing:
                arrived = np.zeros_like(arrived)
            new[stream] = self._index(stream, arrived)
        lost = self._failed[self._range_of] & is_failing
        if lost.any():  # hosts of C ⋈ D are down: what is sent to them is gone, and their state
            for stream in JOINS["CD"]:
                new[stream] = np.where(lost, 0, new[stream])
                window[stream][lost] = 0
                for past in self._sent[stream]:
                    past[lost] = 0
        on = {join: self._is_active(join) for join in JOINS}
        on["CD"] &= ~lost
        for join, (left, right) in JOINS.items():
            made = new[left] * (window[right] + new[right]) + window[left] * new[right]
            self.totals.intermediate += int(made[on[join]].sum())
        before = np.prod([window[s] for s in STREAMS], axis=0)
        for stream in STREAMS:
            window[stream] += new[stream]
            self._sent[stream].append(new[stream])
        after = np.prod([window[s] for s in STREAMS], axis=0)
        self.totals.results += int((after - before)[on["AB"] & on["CD"]].sum())
        for stream in STREAMS:
            window[stream] -= self._sent[stream].popleft()

    def _index(self, stream: str, arrived: Counts) -> Counts:
        """What the stream's host sends on; in exact runs with what it held back, on resuming."""
        on = self._is_active(stream)
        sent = np.where(on, arrived, 0)
        self.totals.base += int(sent.sum())
        kept = self._kept[stream]
        if self.exact:
            resumed = on & ~self._was_on[stream]
            if resumed.any():
                self._catch_up(stream, resumed)
        kept.append(np.where(on, 0, arrived))
        kept.popleft()
        self._was_on[stream] = on
        return sent

    def _catch_up(self, stream: str, resumed: NDArray[np.bool_]) -> None:
        """Held-back tuples arrive, each to stay for the rest of its window."""
        other = next(o for pair in JOINS.values() if stream in pair for o in pair if o != stream)
        for past, kept in zip(self._sent[stream], self._kept[stream], strict=True):
            late = np.where(resumed, kept, 0)
            past += late
            self._window[stream] += late
            self.totals.base += int(late.sum())
            self.totals.intermediate += int((late * self._window[other]).sum())
            kept -= late

    def _is_active(self, name: str) -> NDArray[np.bool_]:
        if self.control is None:
            return np.ones(self.plan.values, dtype=bool)
        return self.control.active[name][self._range_of] > 0

    def _happen(self, now: int) -> None:
        failure, control = self.failure, self.control
        if control is None:
            return
        if failure.stream is not None:
            patience = self.plan.window_s if self.exact else 0
            if now == failure.from_s + patience and now < failure.to_s:
                control.set_stream(failure.stream, self.plan.ranges, able=False)
            if now == failure.to_s:
                control.set_stream(failure.stream, self.plan.ranges, able=True)
        for i in np.flatnonzero(self._failed):
            if now == failure.from_s:
                control.world.crash(f"CD{i}")
            if now == failure.to_s:
                control.world.start(f"CD{i}")
