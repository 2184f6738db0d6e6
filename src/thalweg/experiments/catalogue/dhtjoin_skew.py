"""Skewed values and partners: DHTJoin, table 5.5, and hot values, which the source leaves out.

16 nodes, W = 5 min, λ = 30 tuples/s, 100 ms a hop, join values from 0 to 128; c_n by equation
(4.11) for C = 1. For f·c_n/λ seconds all tuples have values of one node, which overloads it beyond
δ = 0.9; the time from a tuple to its results is taken where a partner makes them.
"""

from __future__ import annotations

import gc
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from thalweg.experiments.p2p.rings import CountingNetwork, dhtjoin, ring
from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.overlay.generator import Generator, seed_of
from thalweg.overlay.p2p.index import Index
from thalweg.overlay.p2p.index_messages import Open, Publish
from thalweg.overlay.p2p.peer import PeerSettings
from thalweg.overlay.p2p.planning import plan_joins
from thalweg.overlay.p2p.query import Between, JoinQuery, Leaf
from thalweg.overlay.p2p.result_messages import Combination, SubmitJoin
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.world import World

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OF_THE_SOURCE = {
    "type 1": {1.0: 0.44, 1.1: 0.42, 1.2: 0.46, 1.4: 0.47},
    "type 2": {1.0: 0.45, 1.1: 0.47, 1.2: 0.43, 1.4: 0.48},
}
HOP_S = 0.1
DELTA = 0.9
HOT = "one hot value"


@dataclass(frozen=True)
class Parameters:
    nodes: int = 16
    rate: float = 30.0
    window_s: float = 300.0
    values: int = 128
    second_values: int = 200  # of the attribute between the two sides of type 2
    factors: tuple[float, ...] = (1.0, 1.1, 1.2, 1.4)
    scale_2: float = 0.1  # of rates in type 2: its intermediate results grow with their square
    seeds: int = 1

    def __post_init__(self) -> None:
        if min(self.nodes, self.values, self.seeds) < 1 or min(self.factors) <= 0:
            raise ValueError("nodes, values and seeds are 1 or more, factors above 0")
        if not 0 < self.scale_2 <= 1:
            raise ValueError("the scale of type 2 is in (0, 1]")

    @classmethod
    def quick(cls) -> Parameters:
        return cls(
            rate=6.0, window_s=60.0, factors=(1.0, 1.4), scale_2=0.5, second_values=20, seeds=1
        )

    def capacity(self, kind: str) -> int:
        """c_n by (4.11) for C = 1: one stream's share of the window at each node."""
        return max(4, round(self.rate_of(kind) * self.window_s / self.nodes))

    def rate_of(self, kind: str) -> float:
        return self.rate * (self.scale_2 if kind == "type 2" else 1.0)


@dataclass(slots=True)
class Measured:
    delays_s: list[float]
    shed: int
    cuts: int
    spread: int
    fullest: float  # the fullest node's share of c_n


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    cases = [(kind, f) for kind in ("type 1", "type 2", HOT) for f in p.factors]
    rows = []
    for i, (kind, f) in enumerate(cases):
        progress(f"{kind}, f = {f:g}", i / len(cases))
        rows.append(_row(kind, f, [_measure(p, kind, f, seed) for seed in range(p.seeds)]))
    return Report(
        "dhtjoin-skew",
        "Skewed values and partners (DHTJoin 5.4)",
        asdict(parameters),
        rows,
        goals=_goals(rows),
        beside=_beside(rows),
        notes=NOTES,
        figures={"5.5-times": lambda axes: _draw(axes, rows)},
    )


def _row(kind: str, f: float, runs: list[Measured]) -> dict[str, Any]:
    delays = [d for r in runs for d in r.delays_s]
    source = OF_THE_SOURCE.get(kind, {}).get(f)
    return {
        "query": kind,
        "f": f,
        "time to a result, s": round(sum(delays) / len(delays) - HOP_S, 3) if delays else None,
        "the source, s": source,
        "results at partners": len(delays),
        "sub-domains": sum(r.cuts for r in runs),
        "hot values spread": sum(r.spread for r in runs),
        "tuples shed": sum(r.shed for r in runs),
        "fullest node, of c_n": round(max(r.fullest for r in runs), 2),
    }


def _measure(p: Parameters, kind: str, f: float, seed: int) -> Measured:
    delays: list[float] = []
    capacity = p.capacity(kind)

    def on_deliver(host: Host, protocol: str, value: object) -> None:
        if isinstance(value, Combination):
            newest = max(t.ts for t in value.parts)
            keys = {t.values[0] for t in value.parts}
            partners = _index(overloaded).owner.partners
            if any(partners.of(key) is not None for key in keys):
                delays.append(world.now_us / SECOND_US - newest / 1_000)

    settings = PeerSettings(
        registered=False,
        buckets=1 << 14,
        room=2 * capacity,
        capacity=capacity,
        overloaded=DELTA,
        remember_owners=False,
    )
    world = ring(p.nodes, dhtjoin(settings), on_deliver, seed=seed, network=CountingNetwork())
    generator = Generator(seed_of(seed, "skew", kind))
    by_owner = _values_by_owner(world, p.values)
    victim = max(by_owner, key=lambda a: len(by_owner[a]))
    overloaded = world.host(victim)
    query = _query(kind, int(p.window_s * 1_000))
    world.call("n0", "p2p-results", SubmitJoin(query))
    streams = query.streams
    for i, stream in enumerate(streams):
        for j in range(4):
            world.call(f"n{(i + 4 * j) % p.nodes}", "p2p-index", Open(stream, f"{stream}{j}"))
    world.run_for(2 * SECOND_US)
    rate = p.rate_of(kind)
    skewed_s = f * capacity / rate
    everything = sorted(v for values in by_owner.values() for v in values)
    hot = [by_owner[victim][0]] if kind == HOT else by_owner[victim]
    begin_us, gap_us = world.now_us, int(1e6 / (rate * len(streams)))
    spread_s = p.window_s / 4
    for i in range(int(rate * len(streams) * (spread_s + skewed_s))):
        world.kernel.run_until(begin_us + (i + 1) * gap_us)
        at = generator.below(len(streams))
        even = (i + 1) * gap_us < spread_s * SECOND_US
        row = (generator.choice(everything if even else hot), generator.below(p.second_values))
        source = f"{streams[at]}{generator.below(4)}"
        address = f"n{(at + 4 * int(source[1:])) % p.nodes}"
        world.call(address, "p2p-index", Publish(source, (row,)))
    world.run_for(5 * SECOND_US)
    gc.unfreeze()
    return _measured(world, delays, capacity)


def _measured(world: World, delays: list[float], capacity: int) -> Measured:
    found = Measured(delays, 0, 0, 0, 0.0)
    for host in world.up():
        owner = _index(host).owner
        for stems in (owner.stems, *owner.partners.guests.values()):
            found.shed += stems.shed
        for delegation in owner.partners.delegations:
            found.spread += delegation.spread is not None
            found.cuts += delegation.spread is None
        fullest = max([owner.stems.size_of(s) for s in owner.stems.names()], default=0)
        found.fullest = max(found.fullest, fullest / capacity)
    return found


def _values_by_owner(world: World, count: int) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    indexes = {h.address: _index(h) for h in world.up()}
    for value in range(count):
        for address, index in indexes.items():
            if index.peer.owns(index.peer.buckets.of(value)):
                found.setdefault(address, []).append(value)
    return found


def _query(kind: str, window: int) -> JoinQuery:
    """A ⋈ B; or (A ⋈ B) ⋈ (C ⋈ D), by a second attribute."""
    if kind != "type 2":
        leaves = (Leaf("A", window), Leaf("B", window))
        comparisons = [Between(0, 0, "=", 1, 0)]
    else:
        leaves = tuple([Leaf(s, window) for s in "ABCD"])
        comparisons = [
            Between(0, 0, "=", 1, 0),
            Between(2, 0, "=", 3, 0),
            Between(1, 1, "=", 2, 1),
        ]
    joins, rest = plan_joins(leaves, comparisons, {})
    return JoinQuery("q", "n0", leaves, joins, ((0, 0),), rest, True)


def _index(host: Host) -> Index:
    assert host.stack is not None
    found = host.stack["p2p-index"]
    assert isinstance(found, Index)
    return found


def _goals(rows: list[dict[str, Any]]) -> list[Goal]:
    times = [r["time to a result, s"] for r in rows if r["query"] == "type 1"]
    known = [t for t in times if t is not None]
    shed = sum(r["tuples shed"] for r in rows if r["query"] != "type 2")
    return [
        Goal("type 1: time to a result, at most", max(known, default=0.0), 0.5, "s", False),
        Goal("tuples shed", shed, 0, "", False),
    ]


def _beside(rows: list[dict[str, Any]]) -> list[Beside]:
    def told(kind: str) -> str:
        shown = [r for r in rows if r["query"] == kind]
        return "; ".join(f"f = {r['f']:g}: {r['time to a result, s']} s" for r in shown)

    return [
        Beside("table 5.5", "type 1: 0.42 to 0.47 s", told("type 1"), HOPS),
        Beside(
            "table 5.5",
            "type 2: 0.43 to 0.48 s",
            told("type 2"),
            "a result of (A ⋈ B) ⋈ (C ⋈ D) is indexed twice on its way, and once more sent to a "
            "partner; the source's times are those of one join",
        ),
        Beside("4.6", "a single hot value is not spoken of", told(HOT)),
    ]


HOPS = (
    "a tuple takes (log₂ 16)/2 = 2 hops along the ring on average, not log₂ 16 = 4, and one more "
    "to the partner"
)

NOTES = (
    "The time is from a tuple's arrival at its source to its results at the partner; the hop from "
    "there to the asker is taken off. Only results count whose values are with a partner.",
    "Type 2 runs at a fraction of the rate (scale_2): with 128 values, 30 tuples/s and windows of "
    "5 minutes each tuple would make 70 intermediate results. c_n is that of its rate.",
    "*one hot value*: all skewed tuples have the same value. One stream's tuples are spread over "
    "the partners, the other's are copied to each.",
)


def _draw(axes: Axes, rows: list[dict[str, Any]]) -> None:
    for kind in ("type 1", "type 2", HOT):
        shown = [r for r in rows if r["query"] == kind and r["time to a result, s"] is not None]
        at = [r["f"] for r in shown]
        (line,) = axes.plot(at, [r["time to a result, s"] for r in shown], "o-", label=kind)
        known = [(r["f"], r["the source, s"]) for r in shown if r["the source, s"] is not None]
        if known:
            xs, ys = zip(*known, strict=True)
            axes.plot(xs, ys, "x:", color=line.get_color(), label=f"{kind}, the source")
    axes.set_xlabel("f")
    axes.set_ylabel("time to a result, s")
    axes.set_ylim(bottom=0)
    axes.legend()
