"""The price of exactness: frontier messages and delay, beside results at once.

Beyond the source, whose results come at once and are complete while nobody fails. Exact results
wait for the streams' frontiers: sources report to their stream's register, a majority of it agrees,
and askers are told. Copies of what sources retain are counted apart.
"""

from __future__ import annotations

import gc
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from thalweg.experiments.p2p.rings import CountingNetwork, dhtjoin, ring
from thalweg.experiments.p2p.workload import Zipf
from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.overlay.generator import Generator, seed_of
from thalweg.overlay.p2p.index_messages import Open, Publish, Published
from thalweg.overlay.p2p.peer import PeerSettings
from thalweg.overlay.p2p.planning import plan_joins
from thalweg.overlay.p2p.query import Between, JoinQuery, Leaf
from thalweg.overlay.p2p.result_messages import Combination, Final, SubmitJoin
from thalweg.overlay.p2p.stream_messages import CreateStream
from thalweg.overlay.p2p.streams import StreamSettings
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WAYS = ("at once", "exact", "exact, 1 copy", "exact, 2 copies")
STREAMS = "AB"


@dataclass(frozen=True)
class Parameters:
    nodes: int = 64
    sources: int = 4  # of each stream
    rates: tuple[float, ...] = (1.0, 3.0, 10.0)  # tuples/s a source
    window_s: float = 10.0
    values: int = 1_000
    duration_s: float = 40.0
    report_ms: int = 1_000
    seeds: int = 1

    def __post_init__(self) -> None:
        if min(self.nodes, self.sources, self.values, self.seeds, self.report_ms) < 1:
            raise ValueError("nodes, sources, values, seeds and milliseconds are 1 or more")

    @classmethod
    def quick(cls) -> Parameters:
        return cls(nodes=16, sources=2, rates=(10.0,), duration_s=20.0)


@dataclass(slots=True)
class Measured:
    messages: int
    bytes: int
    results: int
    tuples: int
    delays_s: list[float]


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    cases = [(rate, way) for rate in p.rates for way in WAYS]
    found: dict[tuple[float, str], list[Measured]] = {}
    for i, (rate, way) in enumerate(cases):
        progress(f"{way}, {rate:g} tuples/s a source", i / len(cases))
        found[rate, way] = [_measure(p, rate, way, seed) for seed in range(p.seeds)]
    rows = [_row(p, rate, way, found) for rate, way in cases]
    return Report(
        "dhtjoin-exactness",
        "The price of exact results between peers",
        asdict(parameters),
        rows,
        goals=_goals(rows),
        beside=[
            Beside(
                "-",
                "results come at once; what failures take away is not spoken of",
                "; ".join(
                    f"{r['tuples/s a source']:g}/s: {r['more messages, %']} % more messages, "
                    f"{r['delay, s']} s"
                    for r in rows
                    if r["results"] == "exact"
                ),
            )
        ],
        notes=NOTES,
        figures={"messages": lambda axes: _draw(axes, rows)},
    )


def _row(
    p: Parameters, rate: float, way: str, found: dict[tuple[float, str], list[Measured]]
) -> dict[str, Any]:
    runs, eager = found[rate, way], found[rate, WAYS[0]]
    messages = sum(r.messages for r in runs) / sum(r.tuples for r in runs)
    base = sum(r.messages for r in eager) / sum(r.tuples for r in eager)
    delays = sorted(d for r in runs for d in r.delays_s)
    mean = sum(delays) / len(delays) if delays else 0.0
    eager_delays = [d for r in eager for d in r.delays_s]
    eager_mean = sum(eager_delays) / len(eager_delays) if eager_delays else 0.0
    return {
        "tuples/s a source": rate,
        "results": way,
        "messages a tuple": round(messages, 2),
        "bytes a tuple": round(sum(r.bytes for r in runs) / sum(r.tuples for r in runs)),
        "more messages, %": round(100 * (messages / base - 1), 1),
        "delay, s": round(mean, 2),
        "added delay, s": round(mean - eager_mean, 2),
        "95 % within, s": round(delays[int(0.95 * len(delays))], 2) if delays else None,
        "result rows": round(sum(r.results for r in runs) / len(runs)),
    }


def _measure(p: Parameters, rate: float, way: str, seed: int) -> Measured:
    exact = way != WAYS[0]
    copies = {"exact, 1 copy": 1, "exact, 2 copies": 2}.get(way, 0)
    delays: list[float] = []
    results = tuples = 0
    counting = False
    instants: dict[int, int] = {}  # instant of a stamp -> when it was given, true time

    def on_deliver(host: Host, protocol: str, value: object) -> None:
        nonlocal results, tuples
        match value:
            case Published(_, _, stamped):
                tuples += counting
                for tup in stamped:
                    instants[tup.ts] = world.now_us
            case Combination(_, parts):
                results += 1
                if counting:
                    newest = max(t.ts for t in parts)
                    delays.append((world.now_us - instants[newest]) / SECOND_US)
            case Final(_, _, _, changes):
                for instant, op, _ in changes:
                    if op == "+":
                        results += 1
                        if counting:
                            delays.append((world.now_us - instants[instant]) / SECOND_US)

    settings = PeerSettings(
        registered=exact,
        copies=copies,
        buckets=1 << 10,
        report_every_us=p.report_ms * 1_000,
        claim_every_us=2 * SECOND_US,
    )
    network = CountingNetwork()
    streams = StreamSettings(issue_every_us=p.report_ms * 250, tend_every_us=30 * SECOND_US)
    world = ring(p.nodes, dhtjoin(settings, streams), on_deliver, seed=seed, network=network)
    generator = Generator(seed_of(seed, "exactness"))
    if exact:
        for i, stream in enumerate(STREAMS):
            world.call(f"n{i}", "p2p-streams", CreateStream(stream))
        world.run_for(3 * SECOND_US)
    window = int(p.window_s * 1_000)
    leaves = tuple([Leaf(s, window) for s in STREAMS])
    joins, rest = plan_joins(leaves, [Between(0, 0, "=", 1, 0)], {})
    query = JoinQuery("q", f"n{p.nodes - 1}", leaves, joins, ((0, 1), (1, 1)), rest)
    query = msgspec.structs.replace(query, eager=not exact)
    world.call(query.asker, "p2p-results", SubmitJoin(query))
    homes = {}
    for i, stream in enumerate(STREAMS):
        for j in range(p.sources):
            homes[f"{stream}{j}"] = f"n{(5 + 7 * (i * p.sources + j)) % p.nodes}"
            world.call(homes[f"{stream}{j}"], "p2p-index", Open(stream, f"{stream}{j}"))
    world.run_for(8 * SECOND_US)
    values = Zipf(p.values, 0.0)
    names = list(homes)
    gap_us = int(1e6 / (rate * len(names)))
    begin_us = world.now_us
    half = int(rate * len(names) * p.duration_s) // 4
    sent = (0, 0)
    for i in range(int(rate * len(names) * p.duration_s)):
        world.kernel.run_until(begin_us + (i + 1) * gap_us)
        if i == half:  # claims are over, owners are known
            counting, sent, results = True, (network.messages, network.bytes), 0
        source = generator.choice(names)
        row = (values.draw(generator), i)
        world.call(homes[source], "p2p-index", Publish(source, (row,)))
    world.run_for(4 * SECOND_US)
    gc.unfreeze()
    messages, size = network.messages - sent[0], network.bytes - sent[1]
    return Measured(messages, size, results, tuples, delays)


def _goals(rows: list[dict[str, Any]]) -> list[Goal]:
    at_ten = [r for r in rows if r["results"] == "exact" and r["tuples/s a source"] == 10.0]
    if not at_ten:
        return []
    more, delay = at_ten[0]["more messages, %"], at_ten[0]["added delay, s"]
    return [
        Goal("more messages for exact results, at 10 tuples/s a source", more, 15.0, "%", False),
        Goal("added delay, at 10 tuples/s a source", delay, 2.0, "s", False),
    ]


NOTES = (
    "Both ways acknowledge tuples and results, and remember owners; *exact* adds claims, reports, "
    "frontiers and watching. Counted and timed from a quarter of the run on, when claims are "
    "over. The ring's own upkeep is left out.",
    "The price does not depend on the rate of tuples: a source sends one report a period, a "
    "stream's register agrees on one frontier. At low rates it is a large share of few messages.",
    "A claim tells every source whose a whole range is; results at once learn the owner of each "
    "bucket from the first tuple that goes there along the ring. In short runs that outweighs the "
    "reports: fewer messages there are no saving of exactness.",
    "A copy costs a message and its answer for each tuple, and a hop there and back before the "
    "tuple is indexed.",
)


def _draw(axes: Axes, rows: list[dict[str, Any]]) -> None:
    for way in WAYS:
        shown = [r for r in rows if r["results"] == way]
        at = [r["tuples/s a source"] for r in shown]
        axes.plot(at, [r["messages a tuple"] for r in shown], "o-", label=way)
    axes.set_xscale("log")
    axes.set_xlabel("tuples/s a source")
    axes.set_ylabel("messages a tuple")
    axes.set_ylim(bottom=0)
    axes.legend()
