"""A relation's changes are kept, and in the end what is left of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from tests.engine.shared.adapter import divided

from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.state.names import REJECTED

SCRIPT = compile_script("""
CREATE RELATION R (a INTEGER, b VARCHAR) TIMESTAMP BY ts BIGINT;
CREATE STREAM S (a INTEGER) TIMESTAMP BY ts BIGINT;
CREATE QUERY rows AS SELECT * FROM R;
CREATE QUERY counted AS SELECT COUNT(*) AS n FROM R;
CREATE QUERY joined AS SELECT R.a FROM R, S [Now] WHERE R.a = S.a;
""")
ROWS, COUNTED, JOINED = SCRIPT.queries


def opened(folder: Path, reduce_at: int, way: str = "one task") -> SharedEngine:
    engine = SharedEngine(folder, durable=False, changes_before_reducing=reduce_at, **divided(way))
    for stream in SCRIPT.catalog.streams():
        engine.add_stream(stream)
    return engine


def change(engine: SharedEngine, *changes: tuple[int, str, int, str | None]) -> None:
    engine.push("R", pl.DataFrame(changes, schema=["ts", "op", "a", "b"], orient="row"))
    engine.run_to_end()


def stored(engine: SharedEngine) -> int:
    return sum(s.rows for s in engine.manifest if s.table.startswith("stem/R/"))


def held(engine: SharedEngine) -> Counter:
    return Counter(engine.content(ROWS)[1].rows())


@pytest.mark.parametrize("way", ["one task", "rows"])
def test_what_was_inserted_and_deleted_again_is_not_kept_for_ever(tmp_path: Path, way: str) -> None:
    engine = opened(tmp_path, 10, way)
    for ts in range(100):
        change(engine, (ts, "+", ts, None), *([(ts, "-", ts - 1, None)] if ts else []))
    assert stored(engine) < 20
    engine.add_queries([ROWS])
    change(engine, (100, "+", 7, "x"))
    assert held(engine) == {(99, None): 1}
    engine.close()


def test_rows_that_are_there_more_than_once_stay_so(tmp_path: Path) -> None:
    engine = opened(tmp_path, 0)
    change(engine, (1, "+", 1, "x"), (1, "+", 1, "x"), (2, "+", 1, "x"))
    change(engine, (3, "-", 1, "x"))
    for ts in (4, 5):
        change(engine, (ts, "+", ts, None))
    assert engine.store.inputs.relation("R").reduced == 4
    engine.add_queries([ROWS])
    change(engine, (6, "-", 1, "x"))
    change(engine, (7, "-", 5, None))
    assert held(engine) == {(1, "x"): 1, (4, None): 1, (5, None): 1}
    engine.close()


def test_a_rejected_minus_takes_nothing_from_what_comes_later(tmp_path: Path) -> None:
    engine = opened(tmp_path, 0)
    change(engine, (1, "-", 1, "x"), (2, "+", 1, "x"), (3, "-", 2, "y"))
    for ts in (5, 6, 7):
        change(engine, (ts, "+", ts, None))
    assert engine.store.inputs.relation("R").reduced > 3
    assert engine.store.inputs.set_aside("R", REJECTED)[0] == 2  # nobody reads, and they are told
    engine.add_queries([ROWS])
    change(engine, (9, "+", 9, None))
    assert held(engine) == {(1, "x"): 1, (5, None): 1, (6, None): 1, (7, None): 1}
    assert engine.store.inputs.set_aside("R", REJECTED)[0] == 2
    engine.close()


def test_changes_are_kept_for_streams_that_lag_behind(tmp_path: Path) -> None:
    """A query over both starts where the slower one is, and the relation was what it was then."""
    engine = opened(tmp_path, 0)
    engine.push("S", pl.DataFrame({"ts": [3], "a": [1]}))
    change(engine, (1, "+", 1, "x"), (5, "-", 1, "x"))
    for ts in (6, 7, 8):
        change(engine, (ts, "+", ts, None))
    assert engine.store.inputs.relation("R").reduced <= 3
    engine.add_queries([JOINED])
    engine.push("S", pl.DataFrame({"ts": [4, 6, 9], "a": [1, 1, 1]}))
    engine.run_to_end()
    said = [row for e in engine.emissions("joined") for row in e.rows.rows()]
    assert said == [(4, 1, 1), (5, -1, 1)]
    assert dict(engine.roster.queries["joined"].horizons) == {"S": 4}
    engine.close()


def test_a_query_that_looks_at_history_begins_with_the_content(tmp_path: Path) -> None:
    """A count has its row from the first insertion on: which of them was first is forgotten."""
    engine = opened(tmp_path, 0)
    change(engine, (1, "+", 1, "x"))
    for ts in (4, 5):
        change(engine, (ts, "+", ts, None))
    reduced = engine.store.inputs.relation("R").reduced
    engine.add_queries([ROWS, COUNTED])
    assert dict(engine.roster.queries["counted"].horizons) == {"R": reduced - 1}
    assert engine.roster.queries["rows"].horizons == ()
    engine.close()


def test_a_tuple_below_what_was_reduced_is_late(tmp_path: Path) -> None:
    engine = opened(tmp_path, 0)
    for ts in (1, 5, 9, 12):
        change(engine, (ts, "+", ts, None))
    assert engine.store.inputs.relation("R").reduced > 4
    rows = pl.DataFrame({"ts": [4], "op": ["+"], "a": [4], "b": ["late"]})
    receipt = engine.push("R", rows, partition=7)
    assert (receipt.accepted, receipt.late) == (0, 1)
    engine.close()
