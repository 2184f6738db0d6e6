"""Three-way joins that keep A ⋈ B, or B ⋈ C: always, never, or where it seems to pay.

    SELECT A.x, B.k, C.y FROM A [Range …], B [Range …], C [Range …] WHERE A.k = B.k AND B.m = C.m

Rates and selectivities are varied: `meets` are how many partners in a full window a tuple finds
(of A in B, and of C in B). All shapes run the same tuples, tick by tick and in turns, so that what
else happens on the machine happens to all of them; what is compared is CPU time, once the windows
are full. In the last case rates change half way: what was right before is wrong then.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from thalweg.cql import compile_script
from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.kernels.join.shapes import MJOIN, Shape, kept_in, shape_text, shapes_of
from thalweg.engine.shared.results.emission import NoOutlet, TickOutput
from thalweg.engine.shared.state.segments import Segment
from thalweg.engine.shared.tick.executors import InProcess
from thalweg.engine.shared.tick.shaping.policy import Adaptive, Chosen, Policy
from thalweg.experiments.report import Goal, Progress, Report

SPAN = 1_000  # instants a tick


@dataclass(frozen=True)
class Case:
    name: str
    rates: tuple[int, int, int]  # tuples a tick
    meets: tuple[float, float]  # partners: of a tuple of A in B, of a tuple of C in B
    later: tuple[int, int, int] | None = None  # rates from half way on, if they change


CASES = (
    Case("equal rates, few partners", (1_000, 1_000, 1_000), (1.0, 1.0)),
    Case("equal rates, C finds many", (1_000, 1_000, 1_000), (0.1, 10.0)),
    Case("equal rates, A finds many", (1_000, 1_000, 1_000), (10.0, 0.1)),
    Case("C fast, finds many that A lacks", (300, 300, 10_000), (0.05, 10.0)),
    Case("C fast, few partners", (300, 300, 10_000), (0.3, 0.3)),
    Case("C slow, A and B find many", (5_000, 5_000, 300), (10.0, 0.3)),
    Case("A fast", (10_000, 300, 300), (0.3, 0.3)),
    Case("B fast", (300, 10_000, 300), (3.0, 3.0)),
    Case("many partners on both sides", (1_000, 1_000, 1_000), (3.0, 3.0)),
    Case("C fast, then A", (200, 1_000, 5_000), (1.0, 5.0), (5_000, 1_000, 200)),
)
QUICK = (0, 2, 3, 5)


@dataclass(frozen=True)
class Parameters:
    ticks: int = 90  # of which the first fill the windows
    window: int = 10  # ticks
    cases: tuple[int, ...] = tuple(range(len(CASES)))  # by their places
    seed: int = 1

    @classmethod
    def quick(cls) -> Parameters:
        return cls(ticks=36, cases=QUICK)


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    rows, goals = [], []
    for number, case in enumerate(CASES[c] for c in p.cases):
        progress(case.name, number / len(p.cases))
        row = _measured(p, case)
        rows.append(row)
        name = f"{case.name}: adaptive over the better"
        goals.append(Goal(name, row["over the better"], 1.05, "x", at_least=False))
    changes = max(r["changes"] - r["is changing"] for r in rows)
    goals.append(Goal("changes of a shape, statistics steady", changes, 1, at_least=False))
    goals.append(Goal("results equal", float(all(r["equal"] for r in rows)), 1.0))
    title = "Three-way joins, with and without a kept intermediate"
    return Report("intermediates", title, asdict(p), rows, goals)


def _always(shape: Shape) -> Policy:
    def choose(op: ph.Join, tick: int) -> Shape:
        return shape if shape in shapes_of(op) else MJOIN

    return Chosen(choose, 1 << 40)


FIXED: dict[str, Policy] = {
    "MJoin": _always(MJOIN),
    "A⋈B": _always(((0, 1),)),
    "B⋈C": _always(((1, 2),)),
}
POLICIES: dict[str, Policy] = {**FIXED, "adaptive": Adaptive()}


class _Sum(NoOutlet):
    """Counts rows, and adds up what is in them."""

    def __init__(self) -> None:
        self.said = (0, 0)

    def wants(self, query: str) -> bool:
        return True

    def deliver(self, output: TickOutput) -> None:
        for emission in output.each():
            rows, total = self.said
            value = emission.rows.select(
                (pl.col("c0") * 31 + pl.col("c1") * 7 + pl.col("c2")).sum()
            ).item()
            self.said = rows + emission.rows.height, total + int(value or 0)


def _measured(p: Parameters, case: Case) -> dict[str, Any]:
    with ExitStack() as stack:
        engines, sums = {}, {}
        for name, policy in POLICIES.items():
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="thalweg-bench-"))
            sums[name] = _Sum()
            engines[name] = _engine(Path(folder), p, policy, sums[name])
            stack.callback(engines[name].close)
        spent = dict.fromkeys(engines, 0.0)
        for tick, batches in enumerate(_batches(p, case)):
            # In turns: whoever is first finds caches cold.
            names = list(engines)
            turn = tick % len(names)
            for name in names[turn:] + names[:turn]:
                engine = engines[name]
                for stream, batch in batches.items():
                    engine.push(stream, batch)
                began = time.process_time()
                engine.run_to_end()
                if tick >= p.window:
                    spent[name] += time.process_time() - began
        measured = p.ticks - p.window
        kept = {n: e.manifest for n, e in engines.items() if "⋈" in n}
        (record,) = engines["adaptive"].ticks.shaping.records.values()
        better = min(spent[name] for name in FIXED)
        return {
            "case": case.name,
            "rates": "/".join(map(str, case.rates)),
            "meets": "/".join(map(str, case.meets)),
            **{f"{n}, ms a tick": round(s / measured * 1e3, 2) for n, s in spent.items()},
            "adaptive is": shape_text(record.shape, "ABC"),
            "changes": len(record.changes),
            "over the better": round(spent["adaptive"] / better, 3),
            "is changing": int(case.later is not None),
            **{f"{n} MB": round(_kept_bytes(m) / 1e6, 2) for n, m in kept.items()},
            "rows a tick": sums["MJoin"].said[0] // p.ticks,
            "equal": len({s.said for s in sums.values()}) == 1,
        }


def _kept_bytes(manifest: Iterable[Segment]) -> int:
    return sum(s.size for s in manifest if kept_in(s.table))


def _engine(folder: Path, p: Parameters, policy: Policy, outlet: _Sum) -> SharedEngine:
    windows = ", ".join(f"{s} [Range {p.window * SPAN}]" for s in "ABC")
    script = compile_script(
        "CREATE STREAM A (k BIGINT, x BIGINT) TIMESTAMP BY ts BIGINT;\n"
        "CREATE STREAM B (k BIGINT, m BIGINT) TIMESTAMP BY ts BIGINT;\n"
        "CREATE STREAM C (m BIGINT, y BIGINT) TIMESTAMP BY ts BIGINT;\n"
        f"CREATE QUERY q AS SELECT A.x, B.k, C.y FROM {windows} WHERE A.k = B.k AND B.m = C.m;"
    )
    engine = SharedEngine(folder, InProcess(1), outlet=outlet, durable=False, shapes=policy)
    for stream in script.catalog.streams():
        engine.add_stream(stream)
    engine.add_queries(script.queries)
    return engine


def _batches(p: Parameters, case: Case) -> Iterator[dict[str, pl.DataFrame]]:
    """New tuples of a tick; a tuple finds `meets` partners in a window of B."""
    rng = np.random.default_rng(p.seed)
    inside = case.rates[1] * p.window
    keys = {"k": max(1, round(inside / case.meets[0])), "m": max(1, round(inside / case.meets[1]))}
    columns = {"A": ("k", "x"), "B": ("k", "m"), "C": ("m", "y")}
    for tick in range(p.ticks):
        batches = {}
        rates = case.rates if case.later is None or tick < p.ticks / 2 else case.later
        for (stream, names), rate in zip(columns.items(), rates, strict=True):
            stamps = np.sort(rng.integers(tick * SPAN, (tick + 1) * SPAN, rate))
            stamps[-1] = (tick + 1) * SPAN - 1
            drawn = {c: rng.integers(0, keys.get(c, 1_000), rate) for c in names}
            batches[stream] = pl.DataFrame({**drawn, "ts": stamps})
        yield batches
