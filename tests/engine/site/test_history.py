"""A query that comes late: what it finds, and what it is told about what is missing."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.engine.site.conftest import OpenSite, said

from thalweg.engine.site import Site
from thalweg.engine.site.backup import restore

SENSOR = "CREATE RELATION Sensor (id INTEGER, room VARCHAR) TIMESTAMP BY ts BIGINT;"
READING = "CREATE STREAM Reading (id INTEGER, celsius DOUBLE) TIMESTAMP BY ts BIGINT;"
JOINED = """CREATE QUERY hot AS SELECT Reading.id, room FROM Reading [Range 5], Sensor
    WHERE Reading.id = Sensor.id;"""
ALL = "CREATE QUERY allsensors AS SELECT * FROM Sensor;"


def sensors(site: Site, *changes: tuple[int, str, int, str]) -> None:
    site.push("Sensor", pl.DataFrame(changes, schema=["ts", "op", "id", "room"], orient="row"))
    site.settle()


def readings(site: Site, *rows: tuple[int, int, float]) -> None:
    site.push("Reading", pl.DataFrame(rows, schema=["ts", "id", "celsius"], orient="row"))
    site.settle()


def passed(site: Site, instant: int, *streams: str) -> None:
    for stream in streams:
        site.heartbeat(stream, instant)
    site.settle()


def held(site: Site, query: str) -> list[tuple]:
    """What the changes of a query add up to."""
    rows: dict[tuple, int] = {}
    for _, op, *row in said(site, query):
        rows[tuple(row)] = rows.get(tuple(row), 0) + (1 if op == "+" else -1)
    return sorted(row for row, count in rows.items() for _ in range(count))


def test_a_late_query_sees_what_a_relation_holds(site: Site) -> None:
    site.execute(SENSOR)
    sensors(site, (1, "+", 1, "hall"), (2, "+", 2, "attic"), (3, "-", 1, "hall"))
    site.execute(ALL)
    passed(site, 9, "Sensor")
    assert said(site, "allsensors") == [(3, "+", 2, "attic")]


def test_a_join_that_is_dropped_and_created_again_finds_its_partners(site: Site) -> None:
    site.execute(SENSOR + READING + JOINED)
    sensors(site, (1, "+", 1, "hall"))
    readings(site, (2, 1, 20.0))
    passed(site, 4, "Sensor", "Reading")
    site.execute("DROP QUERY hot")
    readings(site, (6, 1, 21.0))  # a tick with nobody to read
    site.execute(JOINED)
    readings(site, (7, 1, 22.0))
    passed(site, 8, "Sensor", "Reading")
    assert held(site, "hot")[-1] == (1, "hall")


def test_a_relation_is_whole_after_restarts_and_a_restored_backup(
    open_here: OpenSite, tmp_path: Path
) -> None:
    site = open_here()
    site.execute(SENSOR)
    sensors(site, (1, "+", 1, "hall"))
    site.close()
    site = open_here()
    sensors(site, (2, "+", 2, "attic"))
    site.back_up(tmp_path / "backup.tar.gz")
    site.close()
    restore(tmp_path / "backup.tar.gz", tmp_path / "restored")
    for folder in ("data", "restored"):
        site = open_here(folder)
        site.execute(ALL)
        passed(site, 9, "Sensor")
        assert held(site, "allsensors") == [(1, "hall"), (2, "attic")]


def test_a_relation_that_is_dropped_and_created_again_begins_with_nothing(site: Site) -> None:
    site.execute(SENSOR)
    sensors(site, (1, "+", 1, "hall"))
    site.execute("DROP RELATION Sensor; " + SENSOR)
    sensors(site, (1, "+", 2, "attic"))
    site.execute(ALL)
    passed(site, 9, "Sensor")
    assert held(site, "allsensors") == [(2, "attic")]


def test_what_a_relation_rejects_is_told_once(site: Site) -> None:
    site.execute(SENSOR + ALL)
    sensors(site, (1, "+", 1, "hall"), (2, "-", 7, "none"))
    passed(site, 5, "Sensor")
    assert [s.rejected for s in site.streams()] == [1]
    site.execute("DROP QUERY allsensors;" + ALL)
    passed(site, 6, "Sensor")
    assert [s.rejected for s in site.streams()] == [1]


def test_a_late_query_finds_columns_that_nobody_has_read(site: Site) -> None:
    site.execute(READING + "CREATE QUERY ids AS SELECT id FROM Reading [Range 10];")
    readings(site, (1, 1, 20.0), (2, 2, 21.0))
    script = site.execute("CREATE QUERY warm AS SELECT celsius FROM Reading [Range 10];")
    assert site.notices(script.queries) == []
    passed(site, 3, "Reading")
    assert held(site, "warm") == [(20.0,), (21.0,)]


def test_a_wide_column_is_kept_while_somebody_reads_it(site: Site) -> None:
    site.execute(
        "CREATE STREAM Mail (id INTEGER, body VARCHAR WIDE) TIMESTAMP BY ts BIGINT;"
        "CREATE QUERY ids AS SELECT id FROM Mail [Range 10];"
    )
    site.push("Mail", pl.DataFrame({"ts": [1, 2], "id": [1, 2], "body": ["a", "b"]}))
    site.settle()
    script = site.execute("CREATE QUERY bodies AS SELECT body FROM Mail [Range 10];")
    (notice,) = site.notices(script.queries)
    assert notice.text == (
        "bodies: body of Mail is at hand from 3 on, so [Range 10] is filling until 13. What is "
        "WIDE is kept only while a query reads it: declare it without WIDE"
    )
    site.push("Mail", pl.DataFrame({"ts": [4], "id": [3], "body": ["c"]}))
    passed(site, 5, "Mail")
    assert held(site, "bodies") == [("c",)]


COUNTED = "CREATE QUERY late AS SELECT COUNT(*) AS n FROM Reading [Range 10];"


def test_a_late_count_says_that_it_is_filling_and_from_when_on_it_is_complete(site: Site) -> None:
    site.execute(READING + "CREATE QUERY early AS SELECT COUNT(*) AS n FROM Reading [Range 2];")
    readings(site, *((ts, 1, 20.0) for ts in range(8)))
    script = site.execute(COUNTED)
    (notice,) = site.notices(script.queries)
    assert (notice.query, notice.stream, notice.since, notice.complete_from) == (
        *("late", "Reading"),
        *("4", "14"),
    )
    assert notice.text == (
        "late: Reading is at hand from 4 on, so [Range 10] is filling until 14. No query looked "
        "further back: RETAIN 10 in CREATE STREAM Reading keeps history for queries to come"
    )
    readings(site, (9, 1, 20.0))
    status = {q.name: q for q in site.queries()}
    assert (status["late"].state, status["late"].complete_from) == ("filling", "14")
    assert (status["early"].state, status["early"].complete_from) == ("running", None)
    assert "filling until 14" in site.explain("late").text
    readings(site, (15, 1, 20.0))
    status = {q.name: q for q in site.queries()}
    assert (status["late"].state, status["late"].complete_from) == ("running", "14")
    assert "filling" not in site.explain("late").text


def test_a_query_over_a_stream_that_has_ended_is_told_that_nothing_will_come(site: Site) -> None:
    site.execute(READING + "CREATE QUERY early AS SELECT COUNT(*) AS n FROM Reading [Range 2];")
    readings(site, (1, 1, 20.0))
    site.finish("Reading")
    site.settle()
    script = site.execute("CREATE QUERY late AS SELECT id FROM Reading [Rows 5];")
    (notice,) = site.notices(script.queries)
    assert (notice.since, notice.complete_from) == (None, None)
    assert notice.text.startswith(
        "late: Reading has ended and is not kept, so [Rows 5] stays empty. No query looked further"
    )
    assert held(site, "late") == []


def test_a_late_count_equals_an_early_one_once_its_window_has_passed(open_here: OpenSite) -> None:
    first, then = range(8), range(9, 40, 3)
    found = []
    for comes_first in (True, False):
        site = open_here(str(comes_first))
        site.execute(READING + "CREATE QUERY other AS SELECT id FROM Reading [Now];")
        if comes_first:
            site.execute(COUNTED)
        readings(site, *((ts, 1, 20.0) for ts in first))
        if not comes_first:
            site.execute(COUNTED)
        readings(site, *((ts, 1, 20.0) for ts in then))
        found.append([(ts, n) for ts, op, n in said(site, "late") if op == "+"])
    early, late = found
    (status,) = (q for q in site.queries() if q.name == "late")
    complete = int(status.complete_from or 0)
    assert 8 < complete < 20
    for instant in range(complete, 38):
        assert _latest(late, instant) == _latest(early, instant)
    assert _latest(late, 9) != _latest(early, 9)


def _latest(changes: list[tuple[int, int]], instant: int) -> int:
    return [n for ts, n in changes if ts <= instant][-1]


@pytest.mark.parametrize("is_read", [False, True])
def test_a_stream_with_retain_has_history_for_queries_to_come(
    open_here: OpenSite, is_read: bool
) -> None:
    site = open_here()
    site.execute(READING.replace(";", " RETAIN 10;"))
    if is_read:
        site.execute("CREATE QUERY now AS SELECT id FROM Reading [Now];")
    readings(site, *((ts, ts, 20.0) for ts in range(20)))
    site.close()
    site = open_here()
    script = site.execute("CREATE QUERY late AS SELECT id FROM Reading [Range 10];")
    assert site.notices(script.queries) == []
    passed(site, 20, "Reading")
    assert held(site, "late") == [(ts,) for ts in range(9, 20)]
    longer = site.execute("CREATE QUERY longer AS SELECT id FROM Reading [Range 15];")
    (notice,) = site.notices(longer.queries)
    assert "RETAIN 15 in CREATE STREAM Reading (now 10)" in notice.text


def test_what_retain_has_kept_stays_when_the_stream_ends(site: Site) -> None:
    site.execute(READING.replace(";", " RETAIN 10;"))
    readings(site, *((ts, ts, 20.0) for ts in range(20)))
    site.finish("Reading")
    site.settle()
    site.execute("CREATE QUERY late AS SELECT id FROM Reading [Range 3];")
    site.settle()
    assert {row[2] for row in said(site, "late")} >= set(range(10, 20))


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT id FROM Reading [Rows 3]", "[Rows 3] fills with the rows that come"),
        ("SELECT COUNT(*) AS n FROM Reading [Unbounded]", "will never have what came before"),
        ("SELECT COUNT(*) AS n FROM Reading", "will never have what came before"),
    ],
)
def test_windows_that_no_instant_completes_say_so(site: Site, query: str, told: str) -> None:
    site.execute(READING)
    readings(site, (1, 1, 20.0), (2, 2, 20.0))
    script = site.execute(f"CREATE QUERY late AS {query}")
    (notice,) = site.notices(script.queries)
    assert told in notice.text
    assert notice.complete_from is None


def test_from_now_asks_for_no_past(site: Site) -> None:
    site.execute(SENSOR + READING)
    sensors(site, (1, "+", 1, "hall"))
    readings(site, (1, 1, 20.0), (2, 2, 20.0))
    script = site.execute(JOINED.replace("hot AS", "hot FROM NOW AS"))
    assert site.notices(script.queries) == []
    readings(site, (3, 1, 20.0))
    passed(site, 4, "Sensor", "Reading")
    assert held(site, "hot") == [(1, "hall")]


def test_what_is_held_of_a_stream_that_has_ended_is_at_hand(site: Site) -> None:
    site.execute(READING + "CREATE QUERY early AS SELECT COUNT(*) AS n FROM Reading [Range 2];")
    readings(site, (1, 1, 20.0), (6, 2, 20.0))
    site.settle()
    site.engine.holds.write("another node", {"Reading": 5})
    readings(site, (9, 3, 20.0))
    site.finish("Reading")
    site.settle()
    script = site.execute("CREATE QUERY late AS ISTREAM SELECT id FROM Reading [Range 3];")
    (notice,) = site.notices(script.queries)
    assert "stays empty" not in notice.text
    assert "Reading is at hand from" in notice.text
    site.settle()
    assert (9, "+", 3) in said(site, "late")
