"""A merge that does not pay is not made; a group that computes for nobody is wasteful."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.groups.cost_model import Observed, Part, is_wasteful, saving_s
from thalweg.sharing.core import Core, NormalQuery
from thalweg.sharing.estimate import Statistics
from thalweg.sharing.normal import normalise

STREAMS = "CREATE STREAM S (k INTEGER, price DOUBLE) TIMESTAMP BY at;"


def core(condition: str) -> Core:
    text = f"{STREAMS} CREATE QUERY q AS SELECT k FROM S [Range 10] WHERE {condition};"
    (query,) = compile_script(text).queries
    normal = normalise(query.plan)
    assert isinstance(normal, NormalQuery)
    return normal.core


def saved(tuples: float, *conditions: str) -> float:
    statistics = Statistics({"S": tuples}, {("S", "price"): (0.0, 1000.0)})
    return saving_s([Part(core(c), None) for c in conditions], Observed(), statistics)


NARROW = ("price BETWEEN 1 AND 2", "price BETWEEN 998 AND 999")
ALIKE = ("price BETWEEN 100 AND 900", "price BETWEEN 150 AND 950")


def test_queries_that_want_the_same_rows_save_them() -> None:
    assert saved(1_000_000, *ALIKE) > 0.5


def test_rows_that_nobody_wants_cost_more_than_a_second_run() -> None:
    assert saved(1_000_000, *NARROW) < -1


def test_on_a_slow_stream_a_run_less_is_worth_more_than_a_few_rows() -> None:
    assert saved(100, *NARROW) > 0


def test_measured_rows_correct_the_estimate() -> None:
    """As it turns out, hardly a tuple has such a price."""
    observed = Observed()
    observed.record({}, {"a": 1, "b": 1}, {"a": 0.003, "b": 0.003})
    statistics = Statistics({"S": 1_000_000}, {("S", "price"): (0.0, 1000.0)})
    parts = [Part(core(c), run) for c, run in zip(NARROW, "ab", strict=True)]
    assert saving_s(parts, observed, statistics) > 0


@pytest.mark.parametrize(
    ("rows", "wanted", "is_waste"),
    [
        (1_000_000, "price BETWEEN 100 AND 200", True),
        (1_000_000, "price BETWEEN 100 AND 800", False),  # less than half
        (1_000, "price BETWEEN 100 AND 200", False),  # not worth a move
    ],
)
def test_a_run_is_wasteful_where_half_of_its_rows_and_not_few_are_for_nobody(
    rows: int, wanted: str, is_waste: bool
) -> None:
    observed = Observed()
    observed.record({}, {"wide": rows}, {"wide": 0.5})
    statistics = Statistics({"S": rows}, {("S", "price"): (0.0, 1000.0)})
    wide = Part(core("price >= 0"), "wide")
    assert is_wasteful(wide, core(wanted), observed, statistics) == is_waste


@pytest.mark.parametrize(("conditions", "groups"), [(NARROW, 0), (ALIKE, 1)])
def test_the_engine_merges_late_queries_only_where_it_pays(
    tmp_path: Path, conditions: tuple[str, str], groups: int
) -> None:
    script = compile_script(
        STREAMS
        + "".join(
            f"CREATE QUERY q{i} AS SELECT ISTREAM k, price FROM S [Now] WHERE {c};"
            for i, c in enumerate(conditions)
        )
    )
    engine = SharedEngine(tmp_path, durable=False)
    engine.add_stream(script.catalog.streams()[0])
    rows = 200_000
    for tick in range(6):
        engine.add_queries(q for i, q in enumerate(script.queries) if i == tick)
        stamps = pl.int_range(rows, eager=True) // 1000 + tick * rows // 1000
        prices = (pl.int_range(rows, eager=True) % 1000).cast(pl.Float64)
        engine.push("S", pl.DataFrame({"at": stamps, "k": stamps, "price": prices}))
        engine.tick()
    assert len(engine.roster.groups) == groups
    engine.close()
