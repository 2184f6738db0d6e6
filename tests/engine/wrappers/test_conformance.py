"""What every engine behind `Wrapper` promises: the same small suite over each of them.

A third engine is one more entry of ENGINES.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

from thalweg.cql import compile_script
from thalweg.engine.arrivals import Arrival
from thalweg.engine.changelog import Change
from thalweg.engine.pieces import Piece
from thalweg.engine.reference import run
from thalweg.engine.wrappers.interface import EngineError, Wrapper
from thalweg.engine.wrappers.native import NativeWrapper
from thalweg.engine.wrappers.refusals import refusal
from thalweg.engine.wrappers.shared import SharedWrapper
from thalweg.plan.nodes import Node
from thalweg.plan.windows import BEGINNING, FOREVER

STREAMS = """
CREATE STREAM A (k BIGINT, x DOUBLE, word VARCHAR) TIMESTAMP BY ts BIGINT;
CREATE STREAM B (k BIGINT, y DECIMAL(9, 2)) TIMESTAMP BY ts BIGINT;
"""
JOIN = "SELECT A.k, word, y FROM A [Range 5], B [Range 3] WHERE A.k = B.k AND x < 40"
ISTREAM = "SELECT ISTREAM k, x FROM A [Range 4] WHERE k <> 2"
ITSELF = "SELECT a.x, b.x FROM A [Range 2] a, A [Now] b WHERE a.k = b.k"
QUERIES = {"join": JOIN, "itself": ITSELF}

# (k, x, word) and (k, y), with equal rows one behind the other, which net, and NULLs.
A = [(t, (t % 4, float(t % 3), None if t % 7 == 0 else f"w{t % 2}")) for t in range(40)]
B = [(t, (t % 3, None if t % 5 == 0 else Decimal(t % 2))) for t in range(0, 40, 2)]

Engines = Callable[[], Wrapper]


@pytest.fixture(params=["shared", "native"])
def opened(
    request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> Iterator[Engines]:
    """Opens the same engine again and again: the one before is closed."""
    last: list[Wrapper] = []

    def reopen() -> Wrapper:
        if last:
            last.pop().close()
        folder = tmp_path / "engine"
        made: Wrapper
        made = SharedWrapper(folder) if request.param == "shared" else NativeWrapper(folder, spark)
        last.append(made)
        return made

    yield reopen
    last.pop().close()


def test_an_engine_gives_the_references_rows_in_any_pieces_also_opened_again(
    opened: Engines,
) -> None:
    engine = opened()
    for name, text in QUERIES.items():
        engine.add(name, _plan(text), None)
    _feed(engine, "A", A, BEGINNING, 13)
    _feed(engine, "B", B, BEGINNING, 10)  # behind A
    first = {name: _said(engine, name, 13 if name != "join" else 10) for name in QUERIES}
    engine = opened()
    for name, text in QUERIES.items():
        engine.add(name, _plan(text), None)  # again: it goes on as it is
        assert _changes(engine, name) == first[name], "asked again, the same rows"
    assert engine.fed("join", "A") == 13
    _feed(engine, "A", A, 7, FOREVER)  # of which some was fed before
    _feed(engine, "B", B, 10, FOREVER)
    for name, text in QUERIES.items():
        inputs = {"A": _arrivals(A), "B": _arrivals(B)}
        assert _said(engine, name, FOREVER) == run(_plan(text), inputs).changes
        # From any instant on it is the rest.
        rest = [c for c in _changes(engine, name) if c.ts >= 11]
        assert _changes(engine, name, 11) == rest


def test_a_query_that_begins_late_holds_what_its_windows_hold_then(opened: Engines) -> None:
    engine = opened()
    engine.add("join", _plan(JOIN), 20)
    past = {s: [r for r in rows if r[0] >= 12] for s, rows in (("A", A), ("B", B))}
    for stream, rows in past.items():
        _feed(engine, stream, rows, BEGINNING, FOREVER)
    inputs = {s: _arrivals(rows) for s, rows in past.items()}
    assert _said(engine, "join", FOREVER) == run(_plan(JOIN), inputs, start=20).changes


def test_silence_is_said_and_what_was_taken_may_be_forgotten(opened: Engines) -> None:
    engine = opened()
    engine.add("istream", _plan(ISTREAM), None)
    engine.add("gone", _plan(ISTREAM), None)
    _feed(engine, "A", A, BEGINNING, 10, ["istream"])
    said = _said(engine, "istream", 10)
    engine.forget("istream", 10)
    _feed(engine, "A", [], 10, 25, ["istream"])
    assert _said(engine, "istream", 25, 10) == []
    _feed(engine, "A", A, 25, FOREVER, ["istream"])
    expected = run(_plan(ISTREAM), {"A": _arrivals([r for r in A if not 10 <= r[0] < 25])}).changes
    assert said + _said(engine, "istream", FOREVER, 10) == expected
    engine.drop("gone")
    engine.drop("gone")
    assert opened().queries() == ["istream"]


def test_a_gap_and_a_query_that_was_not_added_are_errors(opened: Engines) -> None:
    engine = opened()
    engine.add("istream", _plan(ISTREAM), None)
    _feed(engine, "A", A, BEGINNING, 10)
    with pytest.raises(EngineError, match="from 10 to 12"):
        _feed(engine, "A", A, 12, 14)
    with pytest.raises(EngineError, match="was not added"):
        engine.fed("another", "A")


def test_what_is_refused_is_told_with_the_reason_before_anything_runs(opened: Engines) -> None:
    engine = opened()
    counted = _plan("SELECT k, COUNT(*) FROM A [Range 5] GROUP BY k")
    shouted = _plan("SELECT UPPER(word) FROM A [Range 5]")
    for plan in (counted, shouted):
        why = engine.refusal(plan)
        if why is not None:
            assert why.startswith(f"{engine.name} can't run ")
            with pytest.raises(EngineError):
                engine.add("q", plan, None)
    assert engine.refusal(_plan(JOIN)) is None
    assert engine.queries() == []


def test_native_refuses_instants_that_spark_cannot_count() -> None:
    stream = "CREATE STREAM T (k BIGINT) TIMESTAMP BY ts TIMESTAMP RESOLUTION"
    for unit, is_refused in (("1 MICROSECONDS", True), ("2 MICROSECONDS", False)):
        text = f"{stream} {unit}; CREATE QUERY q AS SELECT k FROM T [Range 5 SECONDS]"
        (query,) = compile_script(text).queries
        assert (refusal("native", query.plan) is not None) == is_refused


def _plan(text: str) -> Node:
    (query,) = compile_script(f"{STREAMS} CREATE QUERY q AS {text}").queries
    return query.plan


def _feed(
    engine: Wrapper,
    stream: str,
    rows: Iterable[tuple[int, tuple[object, ...]]],
    low: int,
    upto: int,
    queries: list[str] | None = None,
) -> None:
    columns = {
        "A": {"k": pl.Int64, "x": pl.Float64, "word": pl.String},
        "B": {"k": pl.Int64, "y": pl.Decimal(38, 2)},
    }[stream]
    inside = [(t, n, *row) for n, (t, row) in enumerate(rows) if low <= t < upto]
    schema = {"_instant": pl.Int64, "_position": pl.Int64, **columns}
    frame = pl.DataFrame(inside, schema=schema, orient="row")
    for query in engine.queries() if queries is None else queries:
        is_read = stream == "A" or query == "join"
        if is_read:
            engine.feed(query, stream, Piece(low, upto, frame))


def _changes(engine: Wrapper, query: str, since: int = BEGINNING) -> list[Change]:
    found: list[Change] = []
    for piece in engine.publish(query, since):
        assert piece.low == since, "without a gap"
        since = piece.upto
        for ts, op, *row in piece.rows.iter_rows():
            found.append(Change(ts, "+" if op > 0 else "-", tuple(row)))
    return found


def _said(engine: Wrapper, query: str, upto: int, since: int = BEGINNING) -> list[Change]:
    """Once it is final up to an instant."""
    until = time.monotonic() + 300  # Spark, on a machine that has much else to do
    while True:
        if any(piece.upto >= upto for piece in engine.publish(query, since)):
            return _changes(engine, query, since)
        assert time.monotonic() < until, "it has not come to pass"
        time.sleep(0.02)


def _arrivals(rows: Iterable[tuple[int, tuple[object, ...]]]) -> list[Arrival]:
    return [Arrival(0, t, n, row) for n, (t, row) in enumerate(rows)]
