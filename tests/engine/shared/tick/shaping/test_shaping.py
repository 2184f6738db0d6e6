"""An engine changes what its joins keep when rates change, within limits, and says why."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from thalweg.cql.compile import compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.explain.physical import describe
from thalweg.engine.shared.explain.state import State, sizes
from thalweg.engine.shared.kernels.join.shapes import MJOIN, kept_in
from thalweg.engine.shared.state.kept_joins import KeptJoin
from thalweg.engine.shared.tick.shaping.policy import Adaptive, Chosen, Policy

SCRIPT = """
CREATE STREAM A (k INTEGER, x INTEGER) TIMESTAMP BY ts BIGINT;
CREATE STREAM B (k INTEGER, m INTEGER) TIMESTAMP BY ts BIGINT;
CREATE STREAM C (m INTEGER, y INTEGER) TIMESTAMP BY ts BIGINT;
CREATE QUERY q AS SELECT A.x, B.k, C.y FROM A [Range 400], B [Range 400], C [Range 400]
    WHERE A.k = B.k AND B.m = C.m;
"""
SPAN = 100


class Joined:
    """A and B meet rarely, C finds ten partners in B's window."""

    def __init__(self, folder: Path, policy: Policy) -> None:
        self.script = compile_script(SCRIPT)
        self.folder, self.policy, self.ticks = folder, policy, 0
        self.open()

    def open(self) -> None:
        self.engine = SharedEngine(self.folder, durable=False, shapes=self.policy)
        for stream in self.script.catalog.streams():
            self.engine.add_stream(stream)
        self.engine.add_queries(self.script.queries)

    def flow(self, ticks: int, a: int, b: int, c: int, keys: int = 8_000) -> None:
        rates = {"A": a, "B": b, "C": c}
        columns = {"A": {"k": keys, "x": 9}, "B": {"k": keys, "m": 40}, "C": {"m": 40, "y": 9}}
        for number in range(self.ticks, self.ticks + ticks):
            drawn = np.random.default_rng(number)
            for stream, of in columns.items():
                at = number * SPAN + np.arange(rates[stream]) * SPAN // rates[stream]
                values = {name: drawn.integers(0, high, len(at)) for name, high in of.items()}
                typed = pl.DataFrame(values).cast(pl.Int32).with_columns(ts=at)
                self.engine.push(stream, typed)
            self.engine.run_to_end()
        self.ticks += ticks

    @property
    def record(self) -> KeptJoin:
        (record,) = self.engine.ticks.shaping.records.values()
        return record

    @property
    def kept_rows(self) -> int:
        return sum(s.rows for s in self.engine.manifest if kept_in(s.table) is not None)

    def explain(self) -> str:
        plan, engine = self.engine.plan, self.engine
        (flow,) = plan.flows
        ((name, output),) = flow.outputs
        records = engine.ticks.shaping.records
        state = State(sizes(engine.manifest), engine.store.fanouts(), {}, True, records)
        return describe(plan, flow, name, output, engine.streams, state).text()


def test_what_pays_is_kept_once_and_dropped_when_rates_have_changed(tmp_path: Path) -> None:
    joined = Joined(tmp_path, Adaptive())
    joined.flow(1, 100, 100, 4_000)
    assert "shape" not in joined.explain()
    joined.flow(9, 100, 100, 4_000)
    assert joined.record.shape == ((0, 1),)
    assert joined.kept_rows > 0
    text = joined.explain()
    assert "shape ((A B) C), since" in text
    assert "ms a tick expected instead of" in text
    assert "keeps A ⋈ B: " in text
    assert "new C probes A ⋈ B by C.m" in text or "new C probes A ⋈ B by m" in text
    joined.engine.close()
    joined.open()  # what was decided is in the book
    joined.flow(2, 100, 100, 4_000)
    assert joined.record.built == ((0, 1),)
    assert len(joined.record.changes) == 1
    joined.flow(12, 2_000, 100, 5, keys=40)  # A finds many now, and C is slow
    assert (0, 1) not in joined.record.shape


@pytest.mark.parametrize("way", ["one task", "too little room"])
def test_intermediates_have_a_limit_of_memory(tmp_path: Path, way: str) -> None:
    most = 1 << 20 if way == "one task" else 1_000
    joined = Joined(tmp_path, Chosen(lambda op, tick: ((0, 1),), most))
    joined.flow(3, 500, 500, 10)
    if way == "one task":
        assert joined.kept_rows > 0
    else:
        assert joined.kept_rows == 0
        assert "memory" in joined.record.why


def test_adaptive_shapes_keep_to_it(tmp_path: Path) -> None:
    joined = Joined(tmp_path, Adaptive(most_bytes=100))
    joined.flow(10, 100, 100, 4_000)
    assert not joined.engine.ticks.shaping.records or joined.record.shape == MJOIN
