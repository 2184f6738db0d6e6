"""The life of an engine: queries that come and go, idle streams, restarts, tidiness."""

import sqlite3
from pathlib import Path

import polars as pl
import pytest
from tests.engine.shared.adapter import changes

from thalweg.cql import compile_script
from thalweg.engine.changelog import Change
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.ingest.normalise import IngestError
from thalweg.engine.shared.results.emission import NoOutlet
from thalweg.engine.shared.state.store import StoreError

STREAMS = """
CREATE STREAM S (a INTEGER, b VARCHAR) TIMESTAMP BY ts BIGINT;
CREATE STREAM T (a INTEGER, c INTEGER) TIMESTAMP BY ts BIGINT;
"""


class Collected(NoOutlet):
    def __init__(self) -> None:
        self.changes: dict[str, list[Change]] = {}

    def deliver(self, output) -> None:
        for e in output.each():
            self.changes.setdefault(e.query, []).extend(changes(e.rows))


class Running:
    """An engine with the streams S and T, and what its queries have said."""

    def __init__(self, folder: Path, **options) -> None:
        self.outlet = Collected()
        self.engine = SharedEngine(folder, outlet=self.outlet, durable=False, **options)
        self.catalog = compile_script(STREAMS).catalog
        for stream in self.catalog.streams():
            self.engine.add_stream(stream)

    def submit(self, name: str, text: str, *, from_now: bool = False) -> None:
        now = "FROM NOW " if from_now else ""
        script = compile_script(f"CREATE QUERY {name} {now}AS {text};", self.catalog)
        self.engine.add_queries(script.queries)

    def s(self, *rows: tuple[int, int | None, str]) -> None:
        self._push("S", ("ts", "a", "b"), rows)

    def t(self, *rows: tuple[int, int | None, int]) -> None:
        self._push("T", ("ts", "a", "c"), rows)

    def _push(self, stream, columns, rows) -> None:
        self.engine.push(stream, pl.DataFrame(rows, schema=columns, orient="row"))

    def said(self, query: str) -> list[tuple]:
        return [(c.ts, c.op, *c.row) for c in self.outlet.changes.get(query, [])]


@pytest.fixture
def running(tmp_path: Path) -> Running:
    return Running(tmp_path / "data")


def test_a_late_query_gets_the_present_contents_as_plus_at_its_start(running: Running):
    running.submit("everything", "SELECT a, b FROM S [Range 10]")
    running.s((1, 1, "x"), (3, 2, "y"), (5, 3, "z"))
    running.engine.tick()
    running.submit("late", "SELECT a FROM S [Range 10] WHERE a > 1")
    running.s((6, 4, "w"), (20, 9, "v"))
    running.engine.tick()
    assert running.said("late") == [
        (5, "+", 2),
        (5, "+", 3),
        (6, "+", 4),
        (14, "-", 2),
        (16, "-", 3),
        (17, "-", 4),
    ]


def test_history_reaches_back_only_as_far_as_somebody_needed_it(running: Running):
    running.submit("short", "SELECT a FROM S [Range 2]")
    running.s((1, 1, "x"), (8, 2, "y"), (10, 3, "z"))
    running.engine.tick()
    running.submit("long", "SELECT a FROM S [Range 100]")
    running.s((11, 4, "w"), (12, 5, "v"))
    running.engine.tick()
    # The tuple of instant 1 was no longer kept when the query came.
    assert running.said("long") == [(10, "+", 2), (10, "+", 3), (11, "+", 4)]


def test_from_now_sees_nothing_of_the_past(running: Running):
    running.submit("everything", "SELECT a FROM S [Range 10]")
    running.s((1, 1, "x"), (5, 3, "z"))
    running.engine.tick()
    running.submit("fresh", "SELECT a FROM S [Range 10]", from_now=True)
    running.s((7, 4, "w"), (8, 9, "v"))
    running.engine.tick()
    assert running.said("fresh") == [(5, "+", 3), (7, "+", 4)]


def test_a_new_join_probes_tuples_that_came_before_it(running: Running):
    running.submit("watch", "SELECT a, b FROM S [Range 100]")
    running.submit("other", "SELECT a, c FROM T [Range 100]")
    running.s((1, 1, "x"), (2, 2, "y"))
    running.t((1, 5, 50), (2, 1, 10))
    running.engine.tick()
    running.submit("pairs", "SELECT b, c FROM S [Range 100], T [Range 100] WHERE S.a = T.a")
    running.s((4, 3, "z"))
    running.t((4, 2, 20))
    running.engine.tick()
    running.s((9, 0, "-"))
    running.t((9, 0, 0))
    running.engine.tick()
    assert running.said("pairs") == [(2, "+", "x", 10), (4, "+", "y", 20)]


def test_dropping_a_query_leaves_the_others_alone(running: Running):
    running.submit("stays", "SELECT COUNT(*) FROM S [Range 3]")
    running.submit("goes", "SELECT S.a FROM S [Range 3], T [Now] WHERE S.a = T.a")
    running.s((1, 1, "x"), (2, 1, "y"))
    running.engine.tick()
    running.engine.drop_query("goes")
    running.s((3, 1, "z"))
    running.engine.tick()
    assert running.said("stays") == [(1, "+", 1), (2, "-", 1), (2, "+", 2)]


def test_a_query_waits_only_for_its_own_inputs(running: Running):
    running.submit("one", "SELECT a FROM S [Now]")
    running.submit("both", "SELECT S.a FROM S [Now], T [Now] WHERE S.a = T.a")
    running.s((1, 1, "x"), (9, 2, "y"))
    running.engine.tick()
    assert running.said("one") == [(1, "+", 1), (2, "-", 1)]
    assert running.said("both") == []


def test_an_idle_stream_stalls_nobody_and_what_it_then_brings_is_late(running: Running):
    running.submit("both", "SELECT S.a, c FROM S [Range 5], T [Range 5] WHERE S.a = T.a")
    running.t((1, 1, 10))
    running.s((2, 1, "x"), (30, 2, "y"))
    running.engine.tick()
    assert running.said("both") == []
    running.engine.tick(is_idle=lambda stream, _: stream == "T")
    assert running.said("both") == [(2, "+", 1, 10), (7, "-", 1, 10)]
    running.t((3, 1, 11))
    assert running.engine.store.inputs.all_set_aside() == {("T", "late"): 1}
    running.t((30, 2, 12))
    running.s((31, 0, "-"))
    running.t((31, 0, 0))
    running.engine.tick()
    assert running.said("both")[2:] == [(30, "+", 2, 12)]


def test_a_poison_row_goes_to_the_rejects_with_its_reason(running: Running):
    running.submit("everything", "SELECT a FROM S [Now]")
    batch = pl.DataFrame({"ts": ["1", "2", None], "a": ["1", "two", "3"], "b": ["x", "y", "z"]})
    receipt = running.engine.push("S", batch)
    assert (receipt.accepted, receipt.rejected) == (1, 2)
    rejects = (running.engine.folder / "rejects" / "S.jsonl").read_text().splitlines()
    assert "a: 'two' is not a valid INTEGER" in rejects[0]
    assert "the timestamp is missing" in rejects[1]


def test_a_batch_without_a_declared_column_is_refused_whole(running: Running):
    with pytest.raises(IngestError, match="no column b; it has ts, a"):
        running.engine.push("S", pl.DataFrame({"ts": [1], "a": [1]}))


def test_a_folder_of_another_format_is_refused(tmp_path: Path):
    folder = tmp_path / "data"
    Running(folder).engine.close()
    with sqlite3.connect(folder / "book.sqlite") as book:
        book.execute("DROP TABLE batches")
        book.execute("CREATE TABLE batches (stream TEXT, batch TEXT)")
        book.execute("UPDATE meta SET value = '0' WHERE name = 'format'")
    with pytest.raises(StoreError, match=r"written with format 0, .* or start with a new"):
        Running(folder)


def test_after_a_restart_queries_go_on_where_they_were(tmp_path: Path):
    folder = tmp_path / "data"
    query = "SELECT COUNT(*), SUM(a) FROM S [Range 3]"
    first = Running(folder)
    first.submit("count", query)
    first.s((1, 1, "x"), (2, 2, "y"))
    first.engine.tick()
    first.engine.close()
    second = Running(folder)
    second.submit("count", query)
    second.s((3, 3, "z"), (9, 9, "w"))
    second.engine.tick()
    assert first.said("count") == [(1, "+", 1, 1)]
    assert second.said("count")[:3] == [(2, "-", 1, 1), (2, "+", 2, 3), (3, "-", 2, 3)]


def test_expired_tuples_leave_the_disk(tmp_path: Path):
    running = Running(tmp_path / "data", retained_ticks=5)  # few results share files with state
    running.submit("pairs", "SELECT S.a FROM S [Range 5], T [Now] WHERE S.a = T.a")
    for tick in range(40):
        running.s(*((tick * 10 + i, i, "x") for i in range(10)))
        running.t(*((tick * 10 + i, i, 0) for i in range(10)))
        running.engine.tick()
    rows = sum(s.rows for s in running.engine.store.segments())
    assert rows < 100
    files = list((running.engine.folder / "segments").iterdir())
    assert len(files) <= 10
    assert list((running.engine.folder / "landed").glob("*")) == []


def test_small_segments_of_a_long_window_are_merged(running: Running):
    running.submit("pairs", "SELECT S.a FROM S [Unbounded], T [Now] WHERE S.a = T.a")
    for tick in range(60):
        running.s((tick, tick, "x"))
        running.t((tick, tick - 1, 0))
        running.engine.tick()
    stems = [s for s in running.engine.store.segments() if s.table.startswith("stem/S")]
    assert sum(s.rows for s in stems) == 60
    assert len(stems) <= 8
    assert len([c for c in running.said("pairs") if c[1] == "+"]) == 58


def test_results_of_the_last_ticks_can_be_read_again(running: Running):
    running.submit("everything", "SELECT a FROM S [Now]")
    for instant in range(1, 6):
        running.s((instant, instant, "x"))
        running.engine.tick()
    again = [c for e in running.engine.emissions("everything") for c in changes(e.rows)]
    assert again == running.outlet.changes["everything"]
    last = running.engine.emissions("everything")[-1]
    assert [(c.ts, c.op, *c.row) for c in changes(last.rows)] == [(4, "+", 4), (4, "-", 3)][::-1]


def test_a_quoted_stream_name_may_hold_anything(tmp_path: Path):
    running = Running(tmp_path / "data")
    script = compile_script(
        'CREATE STREAM "../odd/ name" (a INTEGER) TIMESTAMP BY ts BIGINT;'
        'CREATE QUERY q AS SELECT a FROM "../odd/ name" [Now];'
    )
    (stream,) = script.catalog.streams()
    running.engine.add_stream(stream)
    running.engine.add_queries(script.queries)
    running.engine.push(stream.name, pl.DataFrame({"ts": ["1", "2", "0"], "a": ["1", "x", "3"]}))
    running.engine.finish(stream.name)
    running.engine.run_to_end()
    assert running.said("q") == [(1, "+", 1), (2, "-", 1)]
    assert {p.name for p in tmp_path.iterdir()} == {"data"}


def test_a_timestamp_that_no_window_could_be_added_to_is_refused(running: Running):
    batch = pl.DataFrame({"ts": [2**62, 1, -(2**63)], "a": [1, 2, 3], "b": ["x", "y", "z"]})
    receipt = running.engine.push("S", batch)
    assert (receipt.accepted, receipt.rejected) == (1, 2)


def test_a_stream_that_has_ended_slides_no_further_while_others_go_on(running: Running):
    counted = "RSTREAM (SELECT COUNT(*) AS n FROM S [Range 1 Slide 5])"
    running.submit("q", f"SELECT n, T.a FROM ({counted}) [Unbounded] x, T [Now]")
    running.s((5, 1, "x"))
    running.t((30, 9, 0))
    running.engine.finish("S")
    running.engine.tick()  # up to 30: the count is told at 5 and 10, and then no more
    running.engine.finish("T")
    running.engine.run_to_end()
    assert running.said("q") == [(30, "+", 0, 9), (30, "+", 1, 9), (31, "-", 0, 9), (31, "-", 1, 9)]


def test_a_watermark_at_zero_is_a_watermark(running: Running):
    running.submit("everything", "SELECT a FROM S [Now]")
    running.s((-3, 1, "x"), (0, 2, "y"))
    running.s((-2, 3, "late"))
    running.s((5, 4, "z"))
    running.engine.tick()
    assert running.engine.store.inputs.all_set_aside() == {("S", "late"): 1}
    assert [c for c in running.said("everything") if c[1] == "+"] == [(-3, "+", 1), (0, "+", 2)]


def test_a_row_that_lasts_is_taken_back_when_nothing_is_stored_of_it(running: Running):
    """Sums of nothing vanish when segments are merged; the row of COUNT 0 is still there."""
    running.submit("counted", "SELECT COUNT(*) AS n FROM S [Now]")
    for at in range(0, 60, 2):  # more ticks than it takes to merge
        running.s((at, 1, "x"))
        running.engine.tick()
    said = running.said("counted")
    assert len(said) > 100
    assert sum(op == "-" for _, op, _ in said) == sum(op == "+" for _, op, _ in said) - 1
