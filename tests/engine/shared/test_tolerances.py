"""Queries of one tolerance are one class: the same rows pass for all, whenever they came."""

import tempfile
from decimal import Decimal
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.generators import Workload
from tests.drawn import examples
from tests.engine.shared.adapter import WAYS, divided
from tests.engine.shared.flowing import Flowing, class_starts

from thalweg.engine.arrivals import Arrival

STREAMS = """
CREATE STREAM P (k INTEGER, a INTEGER, x DOUBLE, d DECIMAL(10,2)) TIMESTAMP BY ts BIGINT LATENESS 2;
CREATE STREAM U (k INTEGER) TIMESTAMP BY ts BIGINT;
"""
TOLERANCES = (
    "2 UPDATES PER k",
    "1 UPDATES",
    "3 ms PER k",
    "2 ms",
    "a 1 PER k",
    "x 0.5 PER k",
    "d 20 PERCENT PER k",
    "d 0.75",
)
WINDOWS = ("[Range 3]", "[Partition By k Rows 1]", "[Rows 2]", "[Unbounded]", "[Tumble 4]")
SHAPES = (
    "SELECT k, a FROM P {window} TOLERANCE {tolerance}",
    "SELECT COUNT(*) AS n FROM P {window} TOLERANCE {tolerance}",
    "RSTREAM (SELECT k, d FROM P {window} TOLERANCE {tolerance})",
    "SELECT p.a, u.k FROM P {window} TOLERANCE {tolerance} p JOIN U [Range 5] u ON p.k = u.k",
)


def _arrivals(rows: list[tuple[int, int, int]]) -> list[Arrival]:
    return [
        Arrival(0, ts, i, (k, a, a / 2, None if a == 3 else Decimal(a)))
        for i, (ts, k, a) in enumerate(rows)
    ]


def _workload(queries: list[str], rows: list[tuple[int, int, int]], others: list[int]) -> Workload:
    text = STREAMS + "".join(f"CREATE QUERY q{i} AS {q};\n" for i, q in enumerate(queries))
    joined = [Arrival(0, ts, i, (i % 2,)) for i, ts in enumerate(sorted(others))]
    return Workload(text, {"P": _arrivals(rows), "U": joined})


def test_who_comes_later_begins_with_what_the_class_holds():
    """Of every third row, whoever asks; the newcomer has the held one at once, as it passed."""
    query = "SELECT a FROM P [Partition By k Rows 1] TOLERANCE 2 UPDATES PER k"
    rows = [(t, 1, t) for t in range(1, 13)]
    with tempfile.TemporaryDirectory() as folder:
        running = Flowing(Path(folder), _workload([query, query], rows, []))
        running.waiting.pop("U")
        running.submit(running.script.queries[:1])
        running.flow(8)
        running.submit(running.script.queries[1:])
        while running.waiting:
            running.flow(1)
        running.check()
        first, later = (running.outlet.results[f"q{i}"] for i in (0, 1))
        (start,) = class_starts(running.engine, running.script.queries[1]).values()
        assert start.since == 6  # the watermark: rows 1 and 4 have passed
        assert [c for c in first if c.ts > 6] == [c for c in later if c.ts > 6]
        assert [(c.op, c.row) for c in later if c.ts <= 6] == [("+", (4,))]
        running.engine.close()


@settings(
    max_examples=examples(6),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_classes_outlast_comings_goings_and_restarts(data: st.DataObject):
    draw = data.draw
    tolerance = draw(st.sampled_from(TOLERANCES))
    queries = [
        draw(st.sampled_from(SHAPES)).format(
            window=draw(st.sampled_from(WINDOWS)), tolerance=tolerance
        )
        for _ in range(3)
    ]
    row = st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 4))
    steps = draw(st.lists(row, min_size=4, max_size=16))
    rows, now = [], 0
    for step, k, a in steps:
        now += step
        rows.append((now - draw(st.integers(0, 2)), k, a))
    others = draw(st.lists(st.integers(0, 20), max_size=4))
    comes = [0, *sorted(draw(st.integers(0, 6)) for _ in range(2))]
    leaves = draw(st.sampled_from([None, None, 4, 6]))
    restarts = draw(st.sets(st.integers(0, 8), max_size=2))
    with tempfile.TemporaryDirectory() as folder:
        way = divided(draw(st.sampled_from(WAYS)))
        running = Flowing(Path(folder), _workload(queries, rows, others), **way)
        tick = 0
        while running.waiting or tick <= max(comes):
            running.submit(
                [q for q, at in zip(running.script.queries, comes, strict=True) if at == tick]
            )
            if tick == leaves and len(running.standing) > 1:
                running.drop(running.standing[0])
            if tick in restarts:
                running.engine.close()
                running.open()
            running.flow(draw(st.integers(1, 2)))
            tick += 1
        running.check()
        running.engine.close()
