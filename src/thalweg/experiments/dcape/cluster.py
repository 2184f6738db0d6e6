"""Machines with a capacity, and the buckets that they run (D-CAPE 5.1).

Each bucket has a real join (`adapt/moves/state/join.py`) with real windows and results. A machine
spends a budget of comparisons a second: a row costs one for its insertion and one for each row
of the states in its bucket that it is compared with, as D-CAPE's joins without an index do. What
it can't process waits in its queue. Moves and shapes are decided by the project's own policies
(`adapt/balancing`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from thalweg.adapt.balancing.local import LocalOptimiser, Statistics
from thalweg.adapt.balancing.policy import Balancer, Settings
from thalweg.adapt.moves.messages.reports import Load
from thalweg.adapt.moves.query import Combination, Query, Row, bucket_of
from thalweg.adapt.moves.state.join import Emits, RangeJoin
from thalweg.adapt.moves.state.matching import reshaped
from thalweg.adapt.moves.state.shapes import Shape, left_deep
from thalweg.adapt.moves.ways import MSLB, PTLB
from thalweg.experiments.dcape.arrivals import Arrivals
from thalweg.plan.windows import TimeWindow

TICKS_PER_S = 10  # instants of the streams
LOOK_EVERY_S = 2


@dataclass(frozen=True, slots=True)
class Setting:
    arrivals: Arrivals
    window_s: float
    seconds: int
    machines: int = 7
    buckets: int = 100
    keys: int = 2_000
    capacity: float = 400.0  # comparisons a second and machine
    per_tuple: float = 2.0  # comparisons' worth of packing, sending or inserting a tuple of state
    way: str | None = None
    local: bool = False
    old_windows: float = 1.0  # for how many windows PTLB keeps the old track
    hot: float = 0.5  # the share of the first machine
    balance_from_s: int = 0
    order: tuple[int, ...] = (0, 1, 2)  # in which streams are joined at first


@dataclass(slots=True)
class Bucket:
    number: int
    machine: int
    join: RangeJoin
    waiting: deque[tuple[int, int, Row]] = field(default_factory=deque)  # instant, leaf, row
    old: Bucket | None = None  # PTLB: the sender's track
    tau: int = -1  # of an old track; −1: all is said
    until: int = 0  # an old track's end
    ticked: int = 0
    ready_at: float = 0.0  # MSLB: stands still until then


@dataclass(slots=True)
class Ran:
    results: list[int] = field(default_factory=list)  # said, at the end of each second
    tuples: list[int] = field(default_factory=list)  # in queues and states
    moves: list[tuple[str, float, float, int]] = field(
        default_factory=list
    )  # way, from, to, buckets
    open_since_s: float | None = None  # a move that had not ended
    reshaped: int = 0
    why: list[str] = field(default_factory=list)


class Cluster:
    def __init__(self, setting: Setting, seed: int) -> None:
        s = self.setting = setting
        window = TimeWindow(int(s.window_s * TICKS_PER_S))
        self.query = Query(("A", "B", "C"), (window,) * 3, s.buckets)
        self.seed = seed
        shape = left_deep(s.order)
        self.buckets = [
            Bucket(b, self._first_machine(b), RangeJoin(self.query, shape))
            for b in range(s.buckets)
        ]
        self.ran = Ran()
        self.shapes = [shape] * s.machines
        self.debt = [0.0] * s.machines  # work that moves cost, still to be done
        self.seen = [[0] * 3 for _ in range(s.machines)]
        self._optimisers = [LocalOptimiser() for _ in range(s.machines)]
        self._balancer: Balancer | None = None
        if s.way is not None:
            settings = Settings(
                way=s.way,
                by="tuples",
                pause_us=5_000_000,
                threshold=0.2,
                instant_us=100_000,
                at_once=1,
            )
            self._balancer = Balancer(self.query, settings)
        self._moving: list[Bucket] = []
        self._move_from_s = 0.0
        self._said = 0

    def _first_machine(self, bucket: int) -> int:
        s = self.setting
        hot = round(s.buckets * s.hot)
        return 0 if bucket < hot else 1 + (bucket - hot) * (s.machines - 1) // (s.buckets - hot)

    def run(self) -> Ran:
        s = self.setting
        rows = s.arrivals.rows(self.seed, s.seconds, s.keys, TICKS_PER_S)
        upcoming = deque(rows)
        for second in range(s.seconds):
            end = (second + 1) * TICKS_PER_S
            while upcoming and upcoming[0][0] < end:
                self._route(*upcoming.popleft())
            for machine in range(s.machines):
                self._work(machine, second)
            self._finish_moves(second + 1)
            if second % LOOK_EVERY_S == LOOK_EVERY_S - 1:
                self._look(second + 1)
            self.ran.results.append(self._said)
            self.ran.tuples.append(sum(self._tuples(m) for m in range(s.machines)))
        self.ran.open_since_s = self._move_from_s if self._moving else None
        return self.ran

    def _route(self, instant: int, leaf: int, row: Row) -> None:
        bucket = self.buckets[bucket_of(row[2], self.setting.buckets)]
        self.seen[bucket.machine][leaf] += 1
        bucket.waiting.append((instant, leaf, row))
        if bucket.old is not None:
            bucket.old.waiting.append((instant, leaf, row))  # duplicated by the split

    # --- machines ---

    def _on(self, machine: int) -> list[Bucket]:
        tracks = list(self.buckets) + [b.old for b in self.buckets if b.old is not None]
        return [b for b in tracks if b.machine == machine]

    def _work(self, machine: int, second: int) -> None:
        """A second of one machine: the oldest rows first, as far as its budget goes."""
        budget = self.setting.capacity
        paid = min(budget, self.debt[machine])
        self.debt[machine] -= paid
        budget -= paid
        while budget > 0:
            ready = [b for b in self._on(machine) if b.waiting and b.ready_at <= second]
            if not ready:
                return
            horizon = min(b.waiting[0][0] for b in ready) + TICKS_PER_S // 2
            for bucket in ready:
                while budget > 0 and bucket.waiting and bucket.waiting[0][0] < horizon:
                    budget -= self._process(bucket)

    def _process(self, bucket: Bucket) -> float:
        instant, leaf, row = bucket.waiting.popleft()
        join = bucket.join
        kept, made = join.kept, join.made
        before = {i: sum(map(len, t.segments.values())) for i, t in join.tables.items()}
        bucket.ticked += 1
        emits = _only_old(bucket.tau) if bucket.tau >= 0 else _all
        found = join.tick([self.query.single(leaf, row)], bucket.ticked, emits)
        self._said += len(found)
        if bucket.ticked % 20 == 0:
            join.purge(instant)
        return self._compared(join, leaf, before, kept) + join.kept - kept + join.made - made

    def _compared(
        self, join: RangeJoin, leaf: int, sizes: dict[tuple[int, ...], int], kept: int
    ) -> float:
        """Without an index a new row, and each that it makes on the way up, scans its siblings."""
        compared, at, fed = 0.0, (leaf,), 1
        while at in join._parents:
            parent = join._parents[at]
            compared += fed * sum(sizes[c.inputs] for c in parent.children if c.inputs != at)
            fed = max(0, join.kept - kept - 1)
            at = parent.inputs
            if parent is join.shape:
                break
        return compared

    def _tuples(self, machine: int) -> int:
        return sum(
            len(b.waiting)
            + sum(len(x) for t in b.join.tables.values() for x in t.segments.values())
            for b in self._on(machine)
        )

    # --- adaptation ---

    def _look(self, second: int) -> None:
        if self.setting.local:
            for machine in range(self.setting.machines):
                self._reoptimise(machine, second)
        self.seen = [[0] * 3 for _ in range(self.setting.machines)]
        early = second < self.setting.balance_from_s
        if self._balancer is None or self._moving or early:
            return
        loads = {
            f"m{m}": (Load(0, self.setting.buckets, 0, True, 0, self._tuples(m)),)
            for m in range(self.setting.machines)
        }
        for request in self._balancer.decide(second * 1_000_000, loads):
            self.ran.why.append(f"{second} s: {request.why}")
            self._move(int(request.sender[1:]), int(request.receiver[1:]), request.share, second)

    def _reoptimise(self, machine: int, second: int) -> None:
        instants = LOOK_EVERY_S * TICKS_PER_S
        rates = tuple([n / instants for n in self.seen[machine]])
        window = self.setting.window_s * TICKS_PER_S
        ours = max(1, sum(b.machine == machine for b in self.buckets))
        share = ours / self.setting.buckets
        statistics = Statistics(rates, (window,) * 3, max(1.0, self.setting.keys * share), ours)
        optimiser = self._optimisers[machine]
        better = optimiser.better(second * TICKS_PER_S, self.shapes[machine], statistics)
        if better is None:
            return
        self.ran.reshaped += 1
        self.ran.why.append(f"{second} s: m{machine} takes {better.text('ABC')}: {optimiser.why}")
        self.shapes[machine] = better
        for bucket in self._on(machine):
            self.debt[machine] += self._reshape(bucket, better)

    def _reshape(self, bucket: Bucket, shape: Shape) -> float:
        if bucket.join.shape == shape:
            return 0.0
        before = bucket.join.work
        at = bucket.waiting[0][0] if bucket.waiting else 0
        bucket.ticked += 1
        bucket.join = reshaped(bucket.join, shape, at, bucket.ticked).join
        return float(bucket.join.work - before)

    def _move(self, sender: int, receiver: int, share: float, second: int) -> None:
        wanted, moved = share * self._tuples(sender), 0
        ours = [b for b in self.buckets if b.machine == sender and b.old is None]
        for bucket in ours:
            size = sum(len(x) for t in bucket.join.tables.values() for x in t.segments.values())
            if moved + (size + len(bucket.waiting)) / 2 > wanted and self._moving:
                break
            moved += size + len(bucket.waiting)
            self._moving.append(bucket)
        self._move_from_s = second
        if self.setting.way == MSLB:
            self._move_state(sender, receiver, second)
        else:
            self._move_beside(sender, receiver, second)

    def _move_state(self, sender: int, receiver: int, second: int) -> None:
        """All state is packed there, inserted here, and what does not match is recomputed here."""
        total = 0.0
        for bucket in self._moving:
            size = sum(len(x) for t in bucket.join.tables.values() for x in t.segments.values())
            total += size * self.setting.per_tuple
            bucket.machine = receiver
            total += self._reshape(bucket, self.shapes[receiver])
            bucket.ready_at = second + 1 + total / self.setting.capacity
        self.debt[sender] += total / 2
        self.debt[receiver] += total / 2

    def _move_beside(self, sender: int, receiver: int, second: int) -> None:
        """From τ on the split duplicates; the sender's track says what has an old part."""
        tau = second * TICKS_PER_S
        window = self.setting.window_s * TICKS_PER_S
        for bucket in self._moving:
            old = Bucket(bucket.number, sender, bucket.join, bucket.waiting, tau=tau)
            old.ticked = bucket.ticked
            old.until = int(tau + self.setting.old_windows * (window + 1))
            bucket.old, bucket.machine = old, receiver
            bucket.join = RangeJoin(self.query, self.shapes[receiver])
            bucket.waiting, bucket.ticked = deque(), 0

    def _finish_moves(self, second: int) -> None:
        if not self._moving:
            return
        for bucket in self._moving:
            old = bucket.old
            if old is not None:
                done = not old.waiting or old.waiting[0][0] >= old.until
                if done and second * TICKS_PER_S >= old.until:
                    bucket.old = None
        on = any(b.old is not None or b.ready_at > second for b in self._moving)
        if not on:
            way = self.setting.way or PTLB
            self.ran.moves.append((way, self._move_from_s, second, len(self._moving)))
            self._moving = []


def _all(combination: Combination) -> bool:
    return True


def _only_old(tau: int) -> Emits:
    def emits(combination: Combination) -> bool:
        return any(part is not None and part[0] < tau for part in combination[3])

    return emits
