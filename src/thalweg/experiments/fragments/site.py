"""A site at work: queues and tuples on arrays, and at each node the real protocol `Partners`.

Each window τ the model runs with the placement as it is, and every node is told what it measured.
When the protocol stops a unit, its tuples are held back until it starts elsewhere: after the node
has drained what it has and the state has travelled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from thalweg.adapt.partners.messages import (
    Delegate,
    Drop,
    Extracted,
    Fragment,
    Measured,
    Measurement,
    Moved,
    Start,
    Stop,
)
from thalweg.adapt.partners.protocol import Partners
from thalweg.adapt.partners.settings import Settings
from thalweg.experiments.fragments.stations import Jobs, Stations
from thalweg.experiments.fragments.tuples import Results, Traffic, Walks
from thalweg.experiments.fragments.workload import RATE, Workload
from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.stack import Stack
from thalweg.placement.arrays import Floats
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.networks.uniform import UniformNetwork
from thalweg.sim.world import World

WINDOW_S = 0.1  # τ
NETWORK_BPS = 100e6
EXTERN_S = 1e-3  # a job of an ad-hoc query
LEAD_S = 8.0  # for nodes to meet, and for homes to start their fragments


@dataclass(slots=True)
class Seen:
    """What a run showed, second by second."""

    pr_max: list[float] = field(default_factory=list)
    pr_p99: list[float] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    sent_bps: list[float] = field(default_factory=list)
    loads: list[Floats] = field(default_factory=list)  # of each node

    def stdev(self) -> list[float]:
        return [float(np.std(load, ddof=1)) for load in self.loads]


class Site:
    def __init__(
        self,
        work: Workload,
        nodes: int,
        settings: Settings,
        seed: int,
        *,
        window_s: float = WINDOW_S,
    ) -> None:
        self.work, self.nodes, self.settings = work, nodes, settings
        self.window_s = window_s
        self.rates = np.full(len(work.delegate), RATE)
        self.extern = np.zeros(nodes)  # load of ad-hoc queries
        self.stations = Stations(nodes + 1)
        self.traffic = Traffic(work, nodes, NETWORK_BPS, seed)
        self.rng = np.random.default_rng(seed + 1)
        self.place = work.home.copy()
        self.held, self.results = Walks.none(), Results.none()
        self.busy = np.zeros(nodes)
        self.seen = Seen()
        self.moved: list[Moved] = []
        self._sums = np.zeros((2, len(work.paths)))  # of PR, and how many, in this second
        self._moves, self._bytes, self._windows = 0, 0.0, 0
        self._load = np.zeros(nodes)
        self.world = self._start_world(seed)

    def _start_world(self, seed: int) -> World:
        def build(address: str) -> Stack:
            membership = Membership()
            return Stack([membership, Partners(membership, self.settings)])

        network = UniformNetwork(100)
        world = World(build, seed=seed, network=network, on_deliver=self._delivered)
        self.world = world
        names = [f"n{i}" for i in range(self.nodes)]
        for name in names:
            world.start(name)
        for i, name in enumerate(names):
            world.call(name, "membership", Join(tuple(names)))
            mine = np.flatnonzero(self.work.home == i).tolist()
            world.call(name, "partners", Delegate(tuple(self._fragment(u) for u in mine)))
        world.run_for(int(LEAD_S * SECOND_US))
        return world

    def _fragment(self, unit: int) -> Fragment:
        home = self.work.home
        near = tuple((f"u{n}", f"n{home[n]}") for n in self.work.neighbours[unit])
        return Fragment(f"u{unit}", f"n{home[unit]}", near)

    # --- what the protocol wants done ---

    def _delivered(self, host: Host, protocol: str, value: object) -> None:
        node = int(host.address[1:])
        match value:
            case Start(fragment):
                self.place[int(fragment[1:])] = node
            case Stop(fragment, epoch):
                unit = int(fragment[1:])
                self.place[unit] = -1
                drain_s = max(0.0, self.stations.free_at[node] - self.stations.now)
                wire_s = self.work.state_bytes[unit] * 8 / NETWORK_BPS
                after_us = int((drain_s + wire_s) * SECOND_US)
                extracted = Extracted(fragment, epoch, 0, b"")
                self.world.kernel.after(
                    after_us, self.world.call, host.address, "partners", extracted
                )
            case Drop():
                raise RuntimeError(f"{value}: nobody fails here, so nothing is taken over")
            case Moved():
                self._moves += 1
                self.moved.append(value)

    # --- time ---

    def run(self, seconds: float, on_second: Callable[[int], None] | None = None) -> Seen:
        for window in range(round(seconds / self.window_s)):
            second = round(window * self.window_s, 6)
            if on_second is not None and second == int(second):
                on_second(int(second))
            self._window()
        return self.seen

    def _window(self) -> None:
        begin, stations = self.stations.now, self.stations
        free = self._take_held()
        jobs, results, held = self.traffic.slice(self.place, begin, self.window_s, self.rates, free)
        self.held = self.held.and_then(held)
        results.row = results.row + len(stations.waiting)
        self.results = self.results.and_then(results)
        stations.waiting = stations.waiting.and_then(jobs).and_then(self._extern_jobs(begin))
        starts, rows, busy = stations.advance(begin + self.window_s)
        self.busy = busy[: self.nodes] / self.window_s
        self._collect(starts, rows)
        self._tell()
        self.world.run_for(int(self.window_s * SECOND_US))
        self._bytes += self.traffic.sent_bytes
        self._load += self.busy
        self._windows += 1
        if self._windows * self.window_s >= 1 - 1e-9:
            self._end_second()

    def _take_held(self) -> Walks:
        """Tuples that waited for a unit which runs again."""
        if not len(self.held):
            return Walks.none()
        work, held = self.work, self.held
        runs = self.place[work.unit[work.paths[held.path, held.position]]] >= 0
        self.held = held.only(~runs)
        return held.only(runs)

    def _extern_jobs(self, begin: float) -> Jobs:
        counts = self.rng.poisson(self.extern * self.window_s / EXTERN_S)
        total = int(counts.sum())
        if not total:
            return Jobs.none()
        return Jobs(
            np.repeat(np.arange(self.nodes), counts),
            EXTERN_S * self.rng.standard_exponential(total),
            np.full(total, -1),
            np.zeros(total),
            begin + self.window_s * self.rng.random(total),
        )

    def _collect(self, starts: Floats, rows: Floats) -> None:
        out = ~np.isnan(starts[self.results.row])
        done = self.results.only(out)
        delay = starts[done.row] + done.offset - done.entered
        ratio = delay / done.spent
        self._sums[0] += np.bincount(done.path, ratio, len(self.work.paths))
        self._sums[1] += np.bincount(done.path, minlength=len(self.work.paths))
        self.results = self.results.only(~out)
        self.results.row = rows[self.results.row]

    def _tell(self) -> None:
        """Each node hears its own load, and what each unit has of it."""
        running = np.flatnonzero(self.place >= 0)
        at = self.place[running]
        offered = self.traffic.offered[running] / self.window_s
        total = np.bincount(at, offered, self.nodes) + self.extern
        with np.errstate(divide="ignore", invalid="ignore"):
            done = np.where(total > 0, np.minimum(1.0, self.busy / total), 0.0)
        share = offered * np.where(self.busy > 0.999, done, 1.0)[at]
        size = self.work.state_bytes[running]
        by_node: list[list[Measurement]] = [[] for _ in range(self.nodes)]
        columns = (running.tolist(), at.tolist(), share.tolist(), size.tolist())
        for unit, node, load, bytes_ in zip(*columns, strict=True):
            by_node[node].append(Measurement(f"u{unit}", load, bytes_, 0))
        for node, load in enumerate(self.busy.tolist()):
            self.world.call(f"n{node}", "partners", Measured(load, tuple(by_node[node])))

    def _end_second(self) -> None:
        """PR of a query is the worst of its streams'; a stream's is the mean over its results."""
        sums, counts = self._sums
        seen = counts > 0
        ratio = np.ones(len(sums))
        ratio[seen] = sums[seen] / counts[seen]
        by_query = np.ones(self.work.query.max() + 1)
        np.maximum.at(by_query, self.work.query, ratio)
        self.seen.pr_max.append(float(by_query.max()))
        self.seen.pr_p99.append(float(np.percentile(by_query, 99)))
        self.seen.moves.append(self._moves)
        elapsed = self._windows * self.window_s
        self.seen.sent_bps.append(self._bytes * 8 / elapsed)
        self.seen.loads.append(self._load / self._windows)
        self._sums[:] = 0
        self._load = np.zeros(self.nodes)
        self._moves, self._bytes, self._windows = 0, 0.0, 0
