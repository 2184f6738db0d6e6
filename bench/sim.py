"""How fast the simulator is: bare events, an echo between nodes, and real protocols.

Events are steps of protocols (for the bare kernel: actions from its heap). Real protocols run on a
ring that grew node by node, with membership beneath it, in fine weather and under a storm's losses.
Seconds are the processor's: a run takes one core, and others may want it too.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class Parameters:
    bare_events: int = 2_000_000
    echo_seconds: int = 4
    nodes: tuple[int, ...] = (64, 1_024, 4_096)
    seconds: int = 10  # simulated and measured, once the ring has grown
    seed: int = 7

    def __post_init__(self) -> None:
        if min(self.nodes, default=0) < 2 or min(self.echo_seconds, self.seconds) < 1:
            raise ValueError("a ring has two nodes or more, and is measured for a second or more")

    @classmethod
    def quick(cls) -> Parameters:
        return cls(bare_events=500_000, echo_seconds=1, nodes=(64, 1_024), seconds=5)


def run(parameters: Parameters, progress: Progress) -> Report:
    progress("bare events", 0.0)
    rows = [_bare(parameters.bare_events, max(parameters.nodes))]
    for traced in (False, True):
        progress(f"echoes {'with' if traced else 'without'} a trace", 0.05)
        rows.append(_echoes(max(parameters.nodes), parameters.echo_seconds, traced))
    done, of = 0, 2 * sum(parameters.nodes)
    for nodes in parameters.nodes:
        for rates in (Rates(), Rates(loss=0.05, duplication=0.05, delay=0.05)):
            progress(f"membership and Chord, {nodes:,} nodes", 0.1 + 0.9 * done / of)
            rows.append(_ring(nodes, parameters.seconds, rates, parameters.seed))
            done += nodes
    real = [r["events/s"] for r in rows if r["what"].startswith("membership")]
    goals = [
        Goal("bare events", rows[0]["events/s"], 200_000, "events/s"),
        Goal("real protocols, slowest", min(real), 50_000, "events/s"),
    ]
    if max(parameters.nodes) >= LARGE:  # a quick run does without
        goals.append(Goal("nodes in one run", max(parameters.nodes), LARGE))
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


def _draw(axes: Axes, rows: list[dict[str, Any]]) -> None:
    axes.barh([f"{r['what']}, {r['nodes']:,} nodes" for r in rows], [r["events/s"] for r in rows])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("events a second")


def _row(what: str, nodes: int, events: int, seconds: float) -> dict[str, Any]:
    return {
        "what": what,
        "nodes": nodes,
        "events": events,
        "seconds": seconds,
        "events/s": round(events / seconds),
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def _timed(act: Callable[[], None]) -> float:
    began = time.process_time()
    act()
    return time.process_time() - began


def _bare(events: int, pending: int) -> dict[str, Any]:
    """Actions that only schedule themselves again, as many at a time as there are nodes."""
    kernel = Kernel()

    def again(index: int) -> None:
        kernel.at(kernel.now_us + 1_000 + index % 7, again, index)

    for index in range(pending):
        kernel.at(index % 1_000, again, index)
    seconds = _timed(lambda: kernel.run_until(events // pending * 1_000))
    return _row("bare events", pending, kernel.events, seconds)


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


def _ring(nodes: int, seconds: int, rates: Rates, seed: int) -> dict[str, Any]:
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
    if rates != Rates():
        world.weather = Weather(Generator(seed), rates)
    before = world.steps
    took = _timed(lambda: world.run_for(seconds * SECOND_US))
    weather = "rough weather" if rates != Rates() else "fine weather"
    return _row(f"membership and Chord, {weather}", nodes, world.steps - before, took)
