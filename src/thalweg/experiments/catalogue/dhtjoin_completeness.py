"""Completeness by memory: DHTJoin 4.5's prediction beside joins between peers with too little room.

The prediction is of what is stored: of the combinations that are valid at an instant, the share
whose parts are all in memory. What a user gets is more: a tuple meets its partners when it comes,
whether or not it stays. Both are measured, for 2- to 4-way joins.
"""

from __future__ import annotations

import gc
from collections import Counter, deque
from dataclasses import asdict, dataclass, replace
from math import prod
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
from thalweg.overlay.p2p.sizing import Need, by_chance, completeness, results_by_chance
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.world import World

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STREAMS = "ABCD"
_FULL = 1.25  # windows after which measuring begins: nodes shed only what they have no room for


@dataclass(frozen=True)
class Parameters:
    nodes: int = 4
    rate: float = 400.0  # tuples/s of each stream
    window_s: float = 50.0
    shares: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0, 1.1)
    ways: tuple[int, ...] = (2, 3, 4)
    values_per_node: int = 2_500
    small_s: float = 1.0  # a window of few tuples, where chance shows
    run_windows: float = 1.75
    seeds: int = 1

    def __post_init__(self) -> None:
        if min(self.nodes, self.values_per_node, self.seeds) < 1 or self.run_windows <= _FULL:
            raise ValueError("nodes, values and seeds are 1 or more; a run is longer than a window")
        if not 2 <= min(self.ways) <= max(self.ways) <= len(STREAMS):
            raise ValueError(f"a join has 2 to {len(STREAMS)} ways")

    @classmethod
    def quick(cls) -> Parameters:
        return cls(rate=40.0, shares=(0.4, 0.7, 1.0), values_per_node=250, run_windows=2.0)


@dataclass(slots=True)
class Measured:
    stored: int = 0  # combinations whose parts are all in memory, over the samples
    valid: int = 0  # of so many
    results: int = 0
    possible: int = 0
    estimates: float = 0.0


class Window:
    """How often each value is in a stream's window now, as nobody in the network can see it."""

    def __init__(self, leaf: Leaf) -> None:
        self._leaf = leaf
        self._tuples: deque[tuple[int, int]] = deque()
        self._counts: Counter[int] = Counter()

    def add(self, ts: int, value: int) -> None:
        self._tuples.append((ts, value))
        self._counts[value] += 1

    def at(self, now: int) -> Counter[int]:
        while self._tuples and self._leaf.end(self._tuples[0][0]) <= now:
            _, value = self._tuples.popleft()
            self._counts[value] -= 1
        return self._counts


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    cases = [
        (kind, ways, share)
        for kind in ("even", "hashed")
        for ways in p.ways
        for share in p.shares
        if kind == "even" or ways == 2
    ]
    rows = []
    for i, (kind, ways, share) in enumerate(cases):
        progress(f"{ways} ways, room for {share:.0%} ({kind})", i / len(cases))
        runs = [_measure(p, kind, ways, share, seed) for seed in range(p.seeds)]
        rows.append(_row(p, kind, ways, share, runs))
    rows += _small_rows(p, progress)
    return Report(
        "dhtjoin-completeness",
        "Completeness by memory (DHTJoin 4.5)",
        asdict(parameters),
        rows,
        goals=_goals(rows),
        beside=_beside(rows),
        notes=NOTES,
        figures={"curves": lambda axes: _draw(axes, rows)},
    )


def _small_rows(p: Parameters, progress: Progress) -> list[dict[str, Any]]:
    """The same in windows of few tuples, for longer."""
    values = max(1, round(p.values_per_node * p.small_s / p.window_s))
    small = replace(p, window_s=p.small_s, values_per_node=values, run_windows=20.0)
    rows = []
    for ways in p.ways:
        progress(f"{ways} ways, small windows", 1.0)
        runs = [_measure(small, "even", ways, 1.0, seed) for seed in range(p.seeds)]
        rows.append({**_row(small, "even", ways, 1.0, runs), "values": "even, small"})
    return rows


def _memory(p: Parameters, share: float) -> int:
    return max(1, round(share * p.rate * p.window_s / p.nodes))


def _needs(p: Parameters, ways: int, share: float) -> list[Need]:
    return [Need(s, p.rate, p.window_s, _memory(p, share)) for s in STREAMS[:ways]]


def _row(p: Parameters, kind: str, ways: int, share: float, runs: list[Measured]) -> dict[str, Any]:
    needs = _needs(p, ways, share)
    predicted = completeness(needs, p.nodes)
    stored = sum(r.stored for r in runs) / sum(r.valid for r in runs)
    results = sum(r.results for r in runs) / sum(r.possible for r in runs)
    return {
        "values": kind,
        "ways": ways,
        "room": share,
        "tuples a node": _memory(p, share),
        "predicted": round(predicted, 3),
        "stored": round(stored, 3),
        "off by (points)": round(100 * abs(stored - predicted), 1),
        "by chance": round(by_chance(needs, p.nodes), 3),
        "results": round(results, 3),
        "results, predicted": round(results_by_chance(needs, p.nodes), 3),
        "estimate with results": round(sum(r.estimates for r in runs) / len(runs), 3),
    }


def _measure(p: Parameters, kind: str, ways: int, share: float, seed: int) -> Measured:
    seen = Measured()
    stand_for: list[float] = []
    full_at = 1 << 62  # the instant from which on results are counted

    def on_deliver(host: Host, protocol: str, value: object) -> None:
        if isinstance(value, Combination) and max(t.ts for t in value.parts) >= full_at:
            seen.results += 1
            stand_for.append(1 / value.share)

    # What has expired is gone before anything is shed for room: messages take milliseconds here.
    settings = PeerSettings(
        registered=False, buckets=1 << 14, room=_memory(p, share), eager_slack=10
    )
    world = ring(p.nodes, dhtjoin(settings), on_deliver, seed=seed, network=CountingNetwork(1_000))
    generator = Generator(seed_of(seed, "completeness", kind, ways))
    values = _values(world, p, kind)
    window = int(p.window_s * 1_000)
    leaves = tuple([Leaf(s, window) for s in STREAMS[:ways]])
    joins, rest = plan_joins(leaves, [Between(0, 0, "=", i, 0) for i in range(1, ways)], {})
    query = JoinQuery("q", "n0", leaves, joins, ((0, 0),), rest, True)
    world.call("n0", "p2p-results", SubmitJoin(query))
    for i, leaf in enumerate(leaves):
        world.call(f"n{i}", "p2p-index", Open(leaf.stream, leaf.stream))
    world.run_for(SECOND_US)
    came = {leaf.stream: Window(leaf) for leaf in leaves}
    duration_s = p.run_windows * p.window_s
    gap_us = int(1e6 / (p.rate * ways))
    begin_us = world.now_us
    sample_us, next_sample_us = int(p.window_s * 1e6 / 8), begin_us + int(p.window_s * 1e6 * _FULL)
    full_at = next_sample_us // 1_000
    # In turns would keep the streams in step; the order is drawn.
    for i in range(int(p.rate * ways * duration_s)):
        world.kernel.run_until(begin_us + (i + 1) * gap_us)
        at = generator.below(ways)
        value = generator.choice(values)
        now = world.now_us // 1_000
        if now >= full_at:
            _count_possible(seen, came, leaves, at, now, value)
        came[leaves[at].stream].add(now, value)
        world.call(f"n{at}", "p2p-index", Publish(leaves[at].stream, ((value,),)))
        if world.now_us >= next_sample_us:
            next_sample_us += sample_us
            _sample(seen, world, came, leaves)
    world.run_for(2 * SECOND_US)
    gc.unfreeze()
    seen.estimates = len(stand_for) / sum(stand_for) if stand_for else 1.0
    return seen


def _values(world: World, p: Parameters, kind: str) -> list[int]:
    """As many for each node; or as they come, so that a node has what its arc of the ring has."""
    count = p.nodes * p.values_per_node
    if kind == "hashed":
        return list(range(count))
    found: dict[str, list[int]] = {h.address: [] for h in world.up()}
    indexes = {h.address: _index(h) for h in world.up()}
    value = 0
    while any(len(v) < p.values_per_node for v in found.values()):
        owner = next(
            a for a, index in indexes.items() if index.peer.owns(index.peer.buckets.of(value))
        )
        if len(found[owner]) < p.values_per_node:
            found[owner].append(value)
        value += 1
    return sorted(v for values in found.values() for v in values)


def _index(host: Host) -> Index:
    assert host.stack is not None
    found = host.stack["p2p-index"]
    assert isinstance(found, Index)
    return found


def _count_possible(
    seen: Measured,
    came: dict[str, Window],
    leaves: tuple[Leaf, ...],
    at: int,
    now: int,
    value: int,
) -> None:
    """Combinations that the new tuple makes with all that is in the windows."""
    others = (leaf for i, leaf in enumerate(leaves) if i != at)
    seen.possible += prod(came[leaf.stream].at(now)[value] for leaf in others)


def _sample(
    seen: Measured, world: World, came: dict[str, Window], leaves: tuple[Leaf, ...]
) -> None:
    now = world.now_us // 1_000
    full, stored = [], []
    for leaf in leaves:
        full.append(came[leaf.stream].at(now))
        kept: Counter[object] = Counter()
        for host in world.up():
            for name, value, parts in _index(host).owner.stems.entries():
                if name == f"{leaf.stream}.0" and leaf.end(parts[0].ts) > now:
                    kept[value] += 1
        stored.append(kept)
    seen.valid += sum(prod(c[v] for c in full) for v in full[0])
    seen.stored += sum(prod(c[v] for c in stored) for v in stored[0])


def _goals(rows: list[dict[str, Any]]) -> list[Goal]:
    even = [r for r in rows if r["values"] == "even"]
    worst = max(r["off by (points)"] for r in even)
    all_even = [r for r in rows if r["values"] != "hashed"]
    results = _worst(all_even, "results", "results, predicted")
    chance = _worst(all_even, "stored", "by chance")
    told = _worst(rows, "results", "estimate with results")
    return [
        Goal("stored combinations off the prediction, at most", worst, 3.0, "points", False),
        Goal("the same by chance, small windows too, at most", chance, 3.0, "points", False),
        Goal("results off theirs, at most", results, 3.0, "points", False),
        Goal("estimates off the results, at most", told, 3.0, "points", False),
    ]


def _worst(rows: list[dict[str, Any]], measured: str, predicted: str) -> float:
    return round(max(100 * abs(r[measured] - r[predicted]) for r in rows), 1)


def _beside(rows: list[dict[str, Any]]) -> list[Beside]:
    two = [r for r in rows if r["ways"] == 2 and r["values"] == "even"]
    told = "; ".join(f"{r['room']:g}: {r['predicted']}, {r['stored']}, {r['results']}" for r in two)
    hashed = [r for r in rows if r["values"] == "hashed"]
    most = max((r["off by (points)"] for r in hashed), default=0.0)
    return [
        Beside(
            "(4.7), (4.11)",
            "C = Π n·m(Sᵢ)/(Wᵢλᵢ), for tuples that are spread evenly over the nodes",
            f"2-way, by room: predicted, stored, results: {told}",
            "the formula multiplies the shares of all windows: right for what is stored at an "
            "instant. A result needs its older parts only, as the newest probes when it comes: "
            "one factor fewer",
        ),
        Beside(
            "4.5",
            "the tuples are uniformly distributed across the network",
            f"with plain hashing, arcs of the ring differ: off by up to {most} points",
            "nodes with long arcs shed while others have room; partners are for that",
        ),
    ]


NOTES = (
    "*room* is n·m/(W·λ): the share of a window that the network has room for. *even*: each node "
    "owns as many values as every other, as the source assumes; *hashed*: values as they come.",
    "*estimate with results* is what nodes report with each result, from what they shed and keep.",
    "*by chance*: the prediction for tuples that come at random. At full room the formula says "
    "1, but a node's part of a window holds now more and now fewer tuples than the mean, and what "
    "is above its room is lost: 0.4/√m of each window. *even, small* has so few tuples that it "
    "shows. `thalweg size` says both.",
    "*results, predicted*: by chance, too. The newest tuple of a result probes when it comes, "
    "whether or not it stays, so results are more complete than what is stored.",
    "Measured from 1.25 windows on: until a window is full nothing is shed.",
)


def _draw(axes: Axes, rows: list[dict[str, Any]]) -> None:
    for ways in sorted({r["ways"] for r in rows}):
        shown = [r for r in rows if r["ways"] == ways and r["values"] == "even"]
        at = [r["room"] for r in shown]
        (line,) = axes.plot(
            at, [r["predicted"] for r in shown], "-", label=f"{ways}-way, predicted"
        )
        colour = line.get_color()
        axes.plot(at, [r["stored"] for r in shown], "o", color=colour, label="stored")
        axes.plot(at, [r["results"] for r in shown], "v:", color=colour, label="results")
    axes.set_xlabel("room, share of a window")
    axes.set_ylabel("completeness")
    axes.set_ylim(0, 1.05)
    axes.legend(ncols=3, fontsize="small")
