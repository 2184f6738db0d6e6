"""A table's changes land where nothing is final, and take effect in every query."""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.runner import compare
from tests.drawn import examples
from tests.engine.shared.adapter import WAYS, Collect, divided, push

from thalweg.cql import compile_script
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.ingest.table_door import TableDoor

SCRIPT = """
CREATE STREAM S (k INTEGER, v INTEGER) TIMESTAMP BY ts BIGINT;
CREATE TABLE K (k INTEGER, name VARCHAR, PRIMARY KEY (k));
CREATE TABLE B (k INTEGER, name VARCHAR);
CREATE QUERY joined AS SELECT S.v, K.name FROM S [Range 3], K WHERE S.k = K.k;
CREATE QUERY counted AS SELECT B.k, COUNT(*) AS n FROM B GROUP BY B.k;
CREATE QUERY both AS SELECT K.name, B.name AS other FROM K LEFT JOIN B ON K.k = B.k;
CREATE QUERY windowed AS
  SELECT K.name, window_end, SUM(v) AS s FROM S [Tumble 2] JOIN K ON S.k = K.k
  GROUP BY K.name, window_end;
CREATE QUERY all_of_it AS SELECT RSTREAM S.v, K.name FROM S [Range 4 Slide 2], K WHERE S.k = K.k;
"""

KEYS = st.integers(0, 3)
ROWS = st.lists(st.tuples(KEYS, st.sampled_from(["a", "b", None])), max_size=3)
STEPS = st.one_of(
    st.tuples(st.just("tuples"), st.lists(st.tuples(st.integers(0, 3), KEYS), max_size=3)),
    st.tuples(st.just("upsert"), st.sampled_from("KB"), ROWS),
    st.tuples(st.just("replace"), st.sampled_from("KB"), ROWS),
    st.tuples(st.just("delete"), st.sampled_from("KB"), KEYS),
    st.tuples(st.just("tick")),
    st.tuples(st.just("restart")),
)


class World:
    """An engine, what a table should have, and what landed."""

    def __init__(self, folder: str, way: str) -> None:
        self._folder, self._way = folder, way
        self.script = compile_script(SCRIPT)
        self.streams = {s.name: s for s in self.script.catalog.streams()}
        self.outlet = Collect()
        self.arrivals: dict[str, list[Arrival]] = {name: [] for name in self.streams}
        self.content: dict[str, Counter] = {"K": Counter(), "B": Counter()}
        self.time = 0
        self.open()

    def open(self) -> None:
        options = divided(self._way)
        self.engine = SharedEngine(Path(self._folder), outlet=self.outlet, durable=False, **options)
        for stream in self.streams.values():
            self.engine.add_stream(stream)
        self.engine.add_queries(self.script.queries)
        self.doors = {name: TableDoor(self.engine, self.streams[name]) for name in "KB"}
        landing, taken = self.engine.landing, self.engine.landing.push

        def recorded(stream: Any, batch: pl.DataFrame, **how: Any) -> Any:
            if stream.is_table:
                self._note(stream.name, batch)
            receipt = taken(stream, batch, **how)
            assert (receipt.late, receipt.rejected) == (0, 0)
            return receipt

        landing.push = recorded  # type: ignore[method-assign]

    def _note(self, table: str, batch: pl.DataFrame) -> None:
        found = self.arrivals[table]
        for k, name, instant, op in batch.iter_rows():
            found.append(Arrival(0, instant, len(found), (k, name), op))

    def step(self, step: tuple) -> None:
        match step:
            case ("tuples", gaps):
                self._tuples(gaps)
            case ("upsert", table, rows):
                self.doors[table].upsert(_frame(rows))
                self._upserted(table, rows)
            case ("replace", table, rows):
                self.doors[table].replace(_frame(rows))
                self.content[table] = Counter()
                self._upserted(table, rows)
            case ("delete", table, key):
                self._delete(table, key)
            case ("tick",):
                self.engine.run_to_end()
            case ("restart",):
                self.engine.close()
                self.open()
        for table, door in self.doors.items():
            assert Counter(door.content().rows()) == self.content[table]

    def _tuples(self, gaps: list[tuple[int, int]]) -> None:
        found = self.arrivals["S"]
        for gap, key in gaps:
            self.time += gap
            found.append(Arrival(0, self.time, len(found), (key, len(found)), "+"))
        push(self.engine, self.streams["S"], found[len(found) - len(gaps) :])

    def _upserted(self, table: str, rows: list[tuple]) -> None:
        for key, name in rows:
            if table == "K":
                self._without(table, key)
            self.content[table][key, name] += 1

    def _delete(self, table: str, key: int) -> None:
        (write,) = compile_script(
            f"DELETE FROM {table} WHERE k = {key}", self.script.catalog
        ).writes
        assert write.gone is not None
        self.doors[table].delete(write.gone)
        self._without(table, key)

    def _without(self, table: str, key: int) -> None:
        kept = self.content[table]
        self.content[table] = Counter({row: n for row, n in kept.items() if row[0] != key})


def _frame(rows: list[tuple]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"k": pl.Int64, "name": pl.String}, orient="row")


def test_a_first_load_after_a_tick_is_not_late(tmp_path):
    world = World(str(tmp_path), "one task")
    world.step(("upsert", "B", [(0, "a")]))
    world.step(("tick",))
    world.step(("upsert", "K", [(0, "a")]))


def test_a_moment_that_python_does_not_have_is_told_as_a_number(tmp_path):
    engine = SharedEngine(tmp_path, durable=False)
    table = compile_script("CREATE TABLE B (k INTEGER, name VARCHAR)").catalog.streams()[0]
    engine.add_stream(table)
    absurd = pl.Series("name", [2**31 - 1], dtype=pl.Int32).cast(pl.Date)
    receipt = TableDoor(engine, table).upsert(pl.DataFrame({"k": absurd, "name": absurd}))
    engine.close()
    assert (receipt.accepted, receipt.rejected) == (0, 1)
    assert "2147483647" in (receipt.reason or "")


@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=4, max_size=25), st.sampled_from(WAYS))
def test_drawn_changes_have_their_effect_in_all_queries(steps: list[tuple], way: str):
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder, way)
        for step in steps:
            world.step(step)
        for name in world.streams:
            world.engine.finish(name)
        world.engine.run_to_end()
        world.engine.close()
    for query in world.script.queries:
        expected = reference.evaluate(query.plan, world.arrivals)
        report = compare(query, expected, world.outlet.results.get(query.name, []))
        assert not report, f"{world.arrivals}\n{report}"
