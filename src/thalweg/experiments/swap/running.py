"""One run: streams are read as fast as sites allow, until the last result is there."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from thalweg.adapt.swap.messages import Accepted, Feed, Run
from thalweg.adapt.swap.policies.policy import Policy, PolicyMaker
from thalweg.adapt.swap.protocol import Swap
from thalweg.adapt.swap.settings import SwapSettings
from thalweg.adapt.swap.state import SiteState
from thalweg.experiments.swap.machines import TimedWorld
from thalweg.experiments.swap.oracle import Oracle
from thalweg.experiments.swap.setting import SINK, SITES, S, Setting, query, values
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US

ORACLE = "oracle"
Method = PolicyMaker | str
BEAT_US = 20 * SECOND_US
LONGEST_S = 20_000


@dataclass
class Outcome:
    response_s: float
    first_1: int  # rows of S that went to site 1 first
    first_3: int
    results: int
    chosen: Counter[str]
    stable_rows: int
    busy_s: dict[str, float]
    course: list[tuple[float, int, int]] = field(default_factory=list)  # second, to 1, to 3

    @property
    def share_1(self) -> float:
        return self.first_1 / max(1, self.first_1 + self.first_3)


class Play:
    def __init__(self, setting: Setting, method: Method, settings: SwapSettings | None) -> None:
        policy = (lambda: Oracle(setting, self._now_us)) if isinstance(method, str) else method
        self.settings = replace(settings or SwapSettings(), beat_us=BEAT_US, policy=policy)
        self.left = [list(reversed(v)) for v in values(setting)]
        self.key = [0, 0, 0]
        self.reading = [False, False, False]
        self.world = TimedWorld(self._build, setting, self._after_step, self._delivered)

    def _now_us(self) -> int:
        return self.world.now_us

    def _build(self, address: str) -> Stack:
        return Stack([Swap(self.settings)])

    def run(self) -> Outcome:
        world = self.world
        for address in (*SITES, SINK):
            world.add(address)
            world.start(address)
        for address in (*SITES, SINK):
            world.call(address, "swap", Run(query()))
        for site in SITES:
            self._read(world.hosts[site])
        course = []
        while not self._is_done():
            world.run_for(SECOND_US)
            routed = self._state(SITES[S]).routed
            course.append((world.now_us / 1e6, routed.get((1, 0), 0), routed.get((1, 2), 0)))
            if world.now_us > LONGEST_S * SECOND_US:
                raise RuntimeError(f"not done after {LONGEST_S} simulated seconds")
        routed = self._state(SITES[S]).routed
        policy: Policy = self._state(SITES[S]).policies[S]
        sink = self._state(SINK).sink
        assert sink is not None
        return Outcome(
            response_s=world.last_row_us / 1e6,
            first_1=routed.get((1, 0), 0),
            first_3=routed.get((1, 2), 0),
            results=sink.arrived,
            chosen=policy.chosen,
            stable_rows=getattr(policy, "stable_rows", 0),
            busy_s={a: us / 1e6 for a, us in world.busy_us.items()},
            course=course,
        )

    def _state(self, address: str) -> SiteState:
        stack = self.world.hosts[address].stack
        assert stack is not None
        swap = stack["swap"]
        assert isinstance(swap, Swap)
        return swap.queries["q"]

    def _is_done(self) -> bool:
        if any(self.left) or any(self.reading):
            return False
        states = [self._state(a) for a in SITES]
        waiting = any(e.pending for s in states for e in s.eddies.values())
        return not waiting and not any(o.entries for s in states for o in s.outs.values())

    # --- streams are read while there is room ---

    def _after_step(self, host: Host) -> None:
        if host.address != SINK:
            self._read(host)

    def _read(self, host: Host) -> None:
        stream = SITES.index(host.address)
        if self.reading[stream] or not self.left[stream]:
            return
        swap = host.stack["swap"]  # type: ignore[index]
        if not swap.queries:  # type: ignore[attr-defined]
            return
        if stream == S:  # R and T are only stored; S waits until its rows can go
            waiting = self._state(host.address).pending(stream).values()
            if sum(map(len, waiting)) >= self.settings.batch_rows:
                return
        tuples = []
        left = self.left[stream]
        for _ in range(min(self.settings.batch_rows, len(left))):
            self.key[stream] += 1
            tuples.append((self.key[stream], self.key[stream], (left.pop(),)))
        self.reading[stream] = True
        feed = Feed("q", stream, tuple(tuples), self.key[stream])
        self.world.kernel.after(0, self.world.call, host.address, "swap", feed)

    def _delivered(self, host: Host, protocol: str, value: object) -> None:
        if isinstance(value, Accepted) and isinstance(value.request, Feed):
            self.reading[value.request.stream] = False


def played(setting: Setting, method: Method, settings: SwapSettings | None = None) -> Outcome:
    return Play(setting, method, settings).run()
