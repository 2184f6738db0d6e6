"""Producers rest while their results would be in vain: DHTJoin, figures 5.2, 5.3(a) and 5.3(b).

The plan is (A ⋈ B) ⋈ (C ⋈ D), of type 2, and runs exactly, with and without alerts. Stream D falls
silent for a while: once its window has run empty its register says so, and A, B and C rest; when D
comes back, what rested is made again before anything of D counts. No result may be missing.
"""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from thalweg.experiments.p2p.rings import CountingNetwork, dhtjoin, ring
from thalweg.experiments.p2p.workload import Zipf
from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.overlay.generator import Generator, seed_of
from thalweg.overlay.p2p.index_messages import Open, Publish
from thalweg.overlay.p2p.peer import PeerSettings
from thalweg.overlay.p2p.planning import plan_joins
from thalweg.overlay.p2p.query import Between, JoinQuery, Leaf
from thalweg.overlay.p2p.result_messages import Final, SubmitJoin
from thalweg.overlay.p2p.stream_messages import CreateStream
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STREAMS = "ABCD"
SILENT_FROM_S = 15.0


@dataclass(frozen=True)
class Parameters:
    nodes: int = 32
    inactivity_s: tuple[float, ...] = (20.0, 40.0, 80.0, 120.0)
    windows_s: tuple[float, ...] = (5.0, 10.0, 15.0)
    rates: tuple[float, ...] = (3.0, 6.0, 9.0)  # tuples/s of each stream
    values: int = 60
    second_values: int = 600
    zipf: float = 0.9
    after_s: float = 20.0
    seeds: int = 1

    def __post_init__(self) -> None:
        if min(self.nodes, self.values, self.second_values, self.seeds) < 1:
            raise ValueError("nodes, values and seeds are 1 or more")
        if min(*self.inactivity_s, *self.windows_s, *self.rates, self.after_s) <= 0:
            raise ValueError("periods, windows and rates are above 0")

    @classmethod
    def quick(cls) -> Parameters:
        return cls(nodes=12, inactivity_s=(40.0,), windows_s=(5.0,), rates=(3.0,), after_s=10.0)


@dataclass(slots=True)
class Measured:
    messages: int
    kinds: Counter[tuple[str, str]]
    changes: list[tuple[int, str, tuple[object, ...]]]


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    window, rate, silent = p.windows_s[0], p.rates[0], p.inactivity_s[len(p.inactivity_s) // 2]
    cases = [("5.2", at, at, window, rate) for at in p.inactivity_s]
    cases += [("5.3(a)", at, silent, at, rate) for at in p.windows_s]
    cases += [("5.3(b)", at, silent, window, at) for at in p.rates]
    rows = []
    for i, (figure, at, silent_s, window_s, per_s) in enumerate(cases):
        progress(f"figure {figure} at {at:g}", i / len(cases))
        runs = [
            [_measure(p, silent_s, window_s, per_s, seed, alerts) for alerts in (False, True)]
            for seed in range(p.seeds)
        ]
        rows.append(_row(figure, at, runs))
    return Report(
        "dhtjoin-alerts",
        "Producers rest while their results would be in vain (DHTJoin 5.2)",
        asdict(parameters),
        rows,
        goals=_goals(rows),
        beside=_beside(rows),
        notes=NOTES,
        figures={
            "5.2-inactivity": lambda axes: _draw(axes, rows, "5.2", "inactivity of a stream, s"),
            "5.3a-window": lambda axes: _draw(axes, rows, "5.3(a)", "window, s"),
            "5.3b-rate": lambda axes: _draw(axes, rows, "5.3(b)", "tuples/s of each stream"),
        },
    )


def _row(figure: str, at: float, runs: list[list[Measured]]) -> dict[str, Any]:
    without = sum(a.messages for a, _ in runs) / len(runs)
    alerted = sum(b.messages for _, b in runs) / len(runs)
    kept = [Counter(b.changes) & Counter(a.changes) for a, b in runs]
    wanted = sum(len(a.changes) for a, _ in runs)
    upkeep = ("Ask", "Status", "Accept", "Accepted")
    return {
        "figure": figure,
        "at": at,
        "without alerts": round(without),
        "with alerts": round(alerted),
        "saved %": round(100 * (1 - alerted / without), 1),
        "index messages saved %": round(100 * (1 - _puts(runs, 1) / _puts(runs, 0)), 1),
        "results kept %": round(100 * sum(sum(k.values()) for k in kept) / max(1, wanted), 2),
        "changes": wanted // len(runs),
        "of alerts": round((_alerts(runs, 1) - _alerts(runs, 0)) / len(runs)),
        "of registers": round(
            sum(b.kinds["p2p-streams", k] for _, b in runs for k in upkeep) / len(runs)
        ),
    }


def _alerts(runs: list[list[Measured]], which: int) -> int:
    """Who rests and who resumes is agreed on by claims under the stream's new list of sources."""
    kinds = ("Claim", "Promised", "Refused")
    return sum(r[which].kinds["p2p-index", k] for r in runs for k in kinds)


def _puts(runs: list[list[Measured]], which: int) -> int:
    return sum(r[which].kinds["p2p-index", "Put"] for r in runs)


def _measure(
    p: Parameters, silent_s: float, window_s: float, rate: float, seed: int, alerts: bool
) -> Measured:
    changes: list[tuple[int, str, tuple[object, ...]]] = []

    def on_deliver(host: Host, protocol: str, value: object) -> None:
        if isinstance(value, Final):
            changes.extend(value.changes)

    settings = PeerSettings(buckets=1 << 10, alerts=alerts, claim_every_us=2 * SECOND_US)
    network = CountingNetwork(20_000, has_queues=False)
    world = ring(p.nodes, dhtjoin(settings), on_deliver, seed=seed, network=network)
    for i, stream in enumerate(STREAMS):
        world.call(f"n{i}", "p2p-streams", CreateStream(stream))
    world.run_for(2 * SECOND_US)
    leaves = tuple([Leaf(s, int(window_s * 1_000)) for s in STREAMS])
    equal = [Between(0, 0, "=", 1, 0), Between(2, 0, "=", 3, 0), Between(1, 1, "=", 2, 1)]
    joins, rest = plan_joins(leaves, equal, {})
    outputs = tuple([(i, 2) for i in range(len(STREAMS))])
    query = JoinQuery("q", f"n{p.nodes - 1}", leaves, joins, outputs, rest)
    world.call(query.asker, "p2p-results", SubmitJoin(query))
    for i, stream in enumerate(STREAMS):
        world.call(f"n{i + 4}", "p2p-index", Open(stream, stream))
    world.run_for(6 * SECOND_US)
    generator = Generator(seed_of(seed, "alerts"))
    first, second = Zipf(p.values, p.zipf), Zipf(p.second_values, p.zipf)
    begin_us, gap_us = world.now_us, int(1e6 / (rate * len(STREAMS)))
    total_s = SILENT_FROM_S + silent_s + p.after_s
    for i in range(int(total_s * rate * len(STREAMS))):
        at_us = (i + 1) * gap_us
        world.kernel.run_until(begin_us + at_us)
        stream = STREAMS[i % len(STREAMS)]
        row = (first.draw(generator), second.draw(generator), i)
        if stream == "D" and SILENT_FROM_S <= at_us / SECOND_US < SILENT_FROM_S + silent_s:
            continue
        world.call(f"n{i % len(STREAMS) + 4}", "p2p-index", Publish(stream, (row,)))
    world.run_for(int((window_s + 8) * SECOND_US))
    gc.unfreeze()
    return Measured(network.messages, world.sent, changes)


def _of(rows: list[dict[str, Any]], figure: str) -> list[dict[str, Any]]:
    return [r for r in rows if r["figure"] == figure]


def _goals(rows: list[dict[str, Any]]) -> list[Goal]:
    return [
        Goal("results kept, at least", min(r["results kept %"] for r in rows), 100.0, "%"),
        Goal("messages saved, at most", max(r["saved %"] for r in rows), 23.0, "%"),
    ]


def _beside(rows: list[dict[str, Any]]) -> list[Beside]:
    def told(figure: str) -> str:
        return "; ".join(f"{r['at']:g}: {r['saved %']} %" for r in _of(rows, figure))

    return [
        Beside(
            "5.2",
            "the longer a stream is silent, the more is saved (no figures in the text)",
            told("5.2"),
            "nothing can rest before the silent stream's window has run empty: resting at once, as "
            "printed, loses results",
        ),
        Beside(
            "5.3(a)",
            "a fifth of the nodes that make C ⋈ D fails: up to 23 % fewer messages",
            told("5.3(a)"),
            "here a stream is silent instead: buckets of nodes that fail pass to others, so their "
            "failure makes nobody rest",
        ),
        Beside("5.3(b)", "the same effect as rates rise", told("5.3(b)"), "as for 5.3(a)"),
    ]


NOTES = (
    "All messages are counted but the ring's own upkeep: indexing, acknowledgements, claims, "
    "replays, results, reports and frontiers. A silent stream's return costs claims and replays.",
    "Each time a stream wakes, every owner claims its buckets anew (*of alerts*: the claims and "
    "their answers that there are only for that), and all that is retained is replayed once for "
    "all of them: short silences, and few intermediate results, cost more than they save.",
    "A stream is asleep when all its sources have nothing in any window. Its register decides "
    "that; it wakes under a new version of its list of sources, to which whoever resumes refers.",
)


def _draw(axes: Axes, rows: list[dict[str, Any]], figure: str, label: str) -> None:
    shown = _of(rows, figure)
    at = [r["at"] for r in shown]
    for name, mark in (("without alerts", "o-"), ("with alerts", "s--")):
        axes.plot(at, [r[name] for r in shown], mark, label=name)
    axes.set_xlabel(label)
    axes.set_ylabel("messages")
    axes.set_ylim(bottom=0)
    axes.legend()
