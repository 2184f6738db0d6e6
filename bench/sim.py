"""How fast the simulator is: bare events, an echo between nodes, and real protocols.

Events are steps of protocols (for the bare kernel: actions from its calendar). Real protocols run
on a ring that grew node by node, with membership beneath it, in fine weather and then under a
storm's losses; growth, and the first seconds of each weather, are not measured. Each measurement
has a process of its own, as a simulation has: in memory that others left in shreds it would be
slower. Speeds are by the processor's seconds, as others may want the core too; the clock's stand
beside them.
"""

from __future__ import annotations

import gc
import os
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from thalweg.experiments.report import Goal, Progress, Report
from thalweg.overlay.chord.messages import Create
from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Join, Membership, Settings
from thalweg.overlay.protocol import (
    Effect,
    Event,
    Init,
    Message,
    Receive,
    Send,
    SetTimer,
    TimerFired,
)
from thalweg.overlay.stack import Stack
from thalweg.sim.kernel import SECOND_US, Kernel
from thalweg.sim.trace import Trace
from thalweg.sim.weather import Rates, Weather
from thalweg.sim.world import World

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ECHOES = 3  # answers to each ping
MEMBERS_REMEMBERED = 32
LARGE = 4_096
ROUGH = Rates(loss=0.05, duplication=0.05, delay=0.05)

# Read by the C library and by Python when a process starts (docs/simulation.md, "Speed").
HUGE_PAGES = {"PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


@dataclass(frozen=True)
class Parameters:
    bare_events: int = 2_000_000
    echo_seconds: int = 4
    nodes: tuple[int, ...] = (64, 1_024, 4_096)
    settle_seconds: int = 5  # simulated before each measurement
    seconds: int = 10  # simulated and measured; longer for small rings
    huge_pages: bool = False
    seed: int = 7

    def __post_init__(self) -> None:
        if min(self.nodes, default=0) < 2 or min(self.echo_seconds, self.seconds) < 1:
            raise ValueError("a ring has two nodes or more, and is measured for a second or more")
        if self.settle_seconds < 0:
            raise ValueError(f"{self.settle_seconds} seconds to settle: it can't be negative")

    @classmethod
    def quick(cls) -> Parameters:
        return cls(bare_events=500_000, echo_seconds=1, settle_seconds=1, seconds=2)


def run(parameters: Parameters, progress: Progress) -> Report:
    with _processes(parameters.huge_pages) as processes:
        rows, goals = _measure(parameters, processes, progress)
    # Neighbours on the machine cost caches and clock rate, even where seconds are the processor's.
    load = f"Load of the machine meanwhile: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."
    return Report(
        "sim",
        "Speed of the simulator, one core",
        asdict(parameters),
        rows,
        goals,
        notes=[load],
        figures={"speed": lambda axes: _draw(axes, rows)},
    )


@contextmanager
def _processes(huge_pages: bool) -> Iterator[Executor]:
    """One at a time, and a new one for each task."""
    before = dict(os.environ)
    if huge_pages:
        os.environ.update(HUGE_PAGES)
    try:
        with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
            yield processes
    finally:
        for name in HUGE_PAGES:
            os.environ.pop(name, None)
        os.environ.update(before)


def _measure(
    parameters: Parameters, processes: Executor, progress: Progress
) -> tuple[list[dict[str, Any]], list[Goal]]:
    progress("bare events", 0.0)
    most = max(parameters.nodes)
    rows = [processes.submit(_bare, parameters.bare_events, most).result()]
    for traced in (False, True):
        progress(f"echoes {'with' if traced else 'without'} a trace", 0.05)
        rows.append(processes.submit(_echoes, most, parameters.echo_seconds, traced).result())
    goals = [Goal("bare events", rows[0]["events/s"], 200_000, "events/s")]
    for at, nodes in enumerate(parameters.nodes):
        done = sum(parameters.nodes[:at]) / sum(parameters.nodes)
        progress(f"membership and Chord, {nodes:,} nodes", 0.1 + 0.9 * done)
        for row in processes.submit(_ring, nodes, parameters).result():
            rows.append(row)
            goals.append(
                Goal(f"{row['what']}, {nodes:,} nodes", row["events/s"], 50_000, "events/s")
            )
    goals.append(Goal("nodes in one run", most, LARGE))
    return rows, goals


def _draw(axes: Axes, rows: list[dict[str, Any]]) -> None:
    axes.barh([f"{r['what']}, {r['nodes']:,} nodes" for r in rows], [r["events/s"] for r in rows])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("events a second")


@dataclass(frozen=True, slots=True)
class Took:
    cpu_s: float
    wall_s: float


def _row(what: str, nodes: int, events: int, took: Took) -> dict[str, Any]:
    return {
        "what": what,
        "nodes": nodes,
        "events": events,
        "cpu s": took.cpu_s,
        "events/s": round(events / took.cpu_s),
        "wall s": took.wall_s,
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _timed(act: Callable[[], None]) -> Took:
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    act()
    return Took(time.process_time() - cpu_s, time.perf_counter() - wall_s)


def _bare(events: int, pending: int) -> dict[str, Any]:
    """Actions that only schedule themselves again, as many at a time as there are nodes."""
    kernel = Kernel()

    def again(index: int) -> None:
        kernel.at(kernel.now_us + 1_000 + index % 7, again, index)

    for index in range(pending):
        kernel.at(index % 1_000, again, index)
    took = _timed(lambda: kernel.run_until(events // pending * 1_000))
    return _row("bare events", pending, kernel.events, took)


class Ping(Message, frozen=True):
    left: int


class Echo:
    """The least that a protocol can be: a ping now and then, and a few answers to it."""

    name = "echo"
    messages = (Ping,)
    listens_to = ()

    def __init__(self, peer: str) -> None:
        self._peer = peer

    def step(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case Init():
                return [SetTimer("ping", 1_000)]
            case TimerFired():
                return [Send(self._peer, Ping(ECHOES)), SetTimer("ping", 100_000)]
            case Receive(sender, Ping(left)) if left:
                return [Send(sender, Ping(left - 1))]
        return []


def _echoes(nodes: int, seconds: int, traced: bool) -> dict[str, Any]:
    world = World(
        lambda address: Stack([Echo(f"n{(int(address[1:]) * 7 + 1) % nodes}")]),
        trace=Trace() if traced else None,
    )
    for number in range(nodes):
        world.start(f"n{number}")
    took = _timed(lambda: world.run_for(seconds * SECOND_US))
    what = "echoes, with the hash of the trace" if traced else "echoes"
    return _row(what, nodes, world.steps, took)


def _ring(nodes: int, parameters: Parameters) -> list[dict[str, Any]]:
    """One ring, in fine and then in rough weather."""
    world = _grown(nodes, parameters.seed)
    gc.collect()
    gc.freeze()  # nodes live on: to look through all of them for garbage is work for nothing
    seconds = parameters.seconds * max(1, 1_024 // nodes)  # a few thousand events say little
    rows = []
    for name, weather in (("fine", None), ("rough", Weather(Generator(parameters.seed), ROUGH))):
        world.weather = weather
        world.run_for(parameters.settle_seconds * SECOND_US)
        before = world.steps
        took = _timed(lambda: world.run_for(seconds * SECOND_US))
        what = f"membership and Chord, {name} weather"
        rows.append(_row(what, nodes, world.steps - before, took))
    return rows


def _grown(nodes: int, seed: int) -> World:
    def build(address: str) -> Stack:
        membership = Membership(Settings(capacity=MEMBERS_REMEMBERED))
        return Stack([membership, Chord(membership)])

    world = World(build, seed=seed)
    generator = Generator(seed)
    for number in range(nodes):
        address = f"n{number}"
        world.start(address)
        if number == 0:
            world.call(address, "chord", Create())
        else:
            contact = f"n{generator.below(number)}"
            world.call(address, "membership", Join((contact,)))
        world.run_for(10 * SECOND_US // nodes)
    return world
