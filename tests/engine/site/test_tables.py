"""Tables: plain rows in, changes of a relation out, at the instant up to which time has come."""

import threading
import time
from pathlib import Path

import polars as pl
import pytest
from tests.engine.site.conftest import OpenSite, rows, said

from thalweg.cql import CqlError
from thalweg.engine.site import Site
from thalweg.engine.site.errors import WrongUse
from thalweg.engine.sources.errors import SourceError

S = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts;"
PUSHED = "CREATE TABLE Sensor (id INTEGER, room VARCHAR, PRIMARY KEY (id));"
JOIN = "CREATE QUERY q AS SELECT S.a, T.room FROM S [Now], Sensor T WHERE S.a = T.id;"


def sensors(*of: tuple[int | None, str | None]) -> pl.DataFrame:
    return pl.DataFrame(of, schema={"id": pl.Int64, "room": pl.String}, orient="row")


def flow(site: Site, *stamped: tuple[int, int]) -> None:
    site.push("S", rows(*stamped))
    site.settle()


def present(site: Site, query: str) -> list[tuple]:
    """What the changelog has built."""
    found: list[tuple] = []
    for _, op, *row in said(site, query):
        found.append(tuple(row)) if op == "+" else found.remove(tuple(row))
    return sorted(found, key=repr)


def test_the_first_rows_hold_from_the_beginning_of_time(site: Site):
    site.execute(S + PUSHED + JOIN)
    site.push("Sensor", sensors((1, "kitchen"), (2, "hall")))
    flow(site, (-5, 1), (0, 2), (1, 3), (2, 1))
    assert said(site, "q") == [
        (-5, "+", 1, "kitchen"),
        (-4, "-", 1, "kitchen"),
        (0, "+", 2, "hall"),
        (1, "-", 2, "hall"),
    ]


def test_a_later_change_holds_from_the_instant_that_is_next(site: Site):
    site.execute(S + PUSHED + JOIN)
    site.push("Sensor", sensors((1, "kitchen")))
    flow(site, (10, 1), (20, 1))
    site.push("Sensor", sensors((1, "cellar")))
    flow(site, (30, 1), (40, 9))
    assert said(site, "q") == [
        (10, "+", 1, "kitchen"),
        (11, "-", 1, "kitchen"),
        (20, "+", 1, "cellar"),  # 20 was not final when the change came
        (21, "-", 1, "cellar"),
        (30, "+", 1, "cellar"),
        (31, "-", 1, "cellar"),
    ]


def test_a_query_does_not_wait_for_a_table(site: Site):
    site.execute(S + PUSHED + JOIN + "CREATE QUERY n AS SELECT COUNT(*) AS n FROM S [Now];")
    flow(site, (1, 1), (2, 1))
    assert said(site, "n")[0] == (1, "+", 1)
    assert said(site, "q") == []


def test_with_a_key_pushes_replace_and_without_one_they_add(site: Site):
    bag = "CREATE TABLE Bag (id INTEGER, room VARCHAR);"
    site.execute(PUSHED + bag)
    site.execute("CREATE QUERY q AS SELECT * FROM Sensor; CREATE QUERY b AS SELECT * FROM Bag;")
    for table in ("Sensor", "Bag"):
        site.push(table, sensors((1, "kitchen"), (2, "hall")))
        site.push(table, sensors((2, "attic"), (3, None), (2, "cellar")))
    site.settle()
    assert present(site, "q") == [(1, "kitchen"), (2, "cellar"), (3, None)]
    added = [(2, "attic"), (3, None), (2, "cellar")]
    assert present(site, "b") == sorted([(1, "kitchen"), (2, "hall"), *added], key=repr)


def test_a_row_that_does_not_fit_is_set_aside_and_the_rest_taken(site: Site):
    site.execute(PUSHED + "CREATE QUERY q AS SELECT * FROM Sensor;")
    frame = pl.DataFrame({"id": ["1", "x", None], "room": ["kitchen", "hall", "cellar"]})
    receipt = site.push("Sensor", frame)
    site.settle()
    assert (receipt.accepted, receipt.rejected) == (1, 2)
    assert receipt.reason == "id: 'x' is not a valid INTEGER"
    assert present(site, "q") == [(1, "kitchen")]


def test_a_repeated_batch_counts_once(site: Site):
    site.execute("CREATE TABLE Bag (id INTEGER, room VARCHAR); CREATE QUERY q AS SELECT * FROM Bag")
    for _ in range(2):
        receipt = site.push("Bag", sensors((1, "kitchen")), batch_id="b1")
        site.push("Bag", sensors((2, "hall")), batch_id="b2")
    site.settle()
    assert receipt.repeated
    assert present(site, "q") == [(1, "kitchen"), (2, "hall")]


def test_insert_and_delete(site: Site):
    site.execute(PUSHED + "CREATE QUERY q AS SELECT * FROM Sensor;")
    site.execute("INSERT INTO Sensor VALUES (1, 'kitchen'), (2, 'hall')")
    site.execute("INSERT INTO Sensor (id) VALUES (3)")
    site.execute("DELETE FROM Sensor WHERE id = 1 OR room = 'nowhere'")
    site.execute("INSERT INTO Sensor VALUES (2, 'cellar')")
    site.settle()
    assert present(site, "q") == [(2, "cellar"), (3, None)]
    site.execute("DELETE FROM Sensor")
    site.settle()
    assert present(site, "q") == []


def test_insert_into_a_stream(site: Site):
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Now]")
    site.execute("INSERT INTO S (a, ts) VALUES (7, 1), (8, 2); INSERT INTO S VALUES (9, 3)")
    site.settle()
    assert said(site, "q")[:2] == [(1, "+", 7), (2, "-", 7)]
    with pytest.raises(WrongUse, match="INSERT INTO S: its timestamp is behind"):
        site.execute("INSERT INTO S VALUES (9, 1)")


def test_tables_go_on_after_a_restart(open_here: OpenSite):
    site = open_here()
    site.execute(S + PUSHED + JOIN)
    site.push("Sensor", sensors((1, "kitchen"), (2, "hall")))
    flow(site, (10, 1), (20, 1))
    site.close()
    site = open_here()
    site.push("Sensor", sensors((2, "cellar")))
    flow(site, (30, 2), (40, 1), (50, 9))
    assert said(site, "q")[4:] == [
        (30, "+", 2, "cellar"),
        (31, "-", 2, "cellar"),
        (40, "+", 1, "kitchen"),
        (41, "-", 1, "kitchen"),
    ]


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_file_is_loaded_and_its_refresh_is_the_difference(
    open_here: OpenSite, tmp_path: Path, form: str
):
    def write(*of: tuple[int | None, str | None]) -> None:
        fresh, path = tmp_path / "fresh", tmp_path / f"sensors.{form}"
        match form:
            case "csv":
                sensors(*of).write_csv(fresh)
            case "json":
                sensors(*of).write_ndjson(fresh)
            case _:
                sensors(*of).write_parquet(fresh)
        fresh.replace(path)

    write((1, "kitchen"), (2, "hall"), (3, "attic"))
    site = open_here()
    site.execute(
        f"CREATE TABLE Sensor (id INTEGER PRIMARY KEY, room VARCHAR) FROM 'sensors.{form}' "
        "REFRESH 20 MS; CREATE QUERY q AS SELECT * FROM Sensor"
    )
    _until(site, "q", [(1, "kitchen"), (2, "hall"), (3, "attic")])
    write((1, "kitchen"), (2, "cellar"))
    _until(site, "q", [(1, "kitchen"), (2, "cellar")])
    # what stayed was not said again
    assert [r[2] for r in said(site, "q") if r[1] == "+"] == [1, 2, 3, 2]
    with pytest.raises(WrongUse, match="fed from"):
        site.push("Sensor", sensors((9, "x")))


def _until(site: Site, query: str, wanted: list[tuple]) -> None:
    for _ in range(500):
        site.settle()
        if present(site, query) == sorted(wanted, key=repr):
            return
        time.sleep(0.02)
    raise AssertionError(present(site, query))


def test_what_is_wrong_with_a_file_is_said_at_once(site: Site):
    with pytest.raises(SourceError, match=r"nowhere\.csv"):
        site.execute("CREATE TABLE T (a INTEGER) FROM 'nowhere.csv'")
    with pytest.raises(SourceError, match="a table is read from a file, not from kafka:"):
        site.execute("CREATE TABLE T (a INTEGER) FROM 'kafka:topic'")


def test_a_table_and_a_stream_agree_on_resolution(site: Site):
    site.execute("CREATE STREAM S (a INTEGER) TIMESTAMP BY ts RESOLUTION 1 SECOND;" + PUSHED)
    with pytest.raises(CqlError, match="agree on RESOLUTION"):
        site.execute(JOIN)


def test_a_dropped_table_begins_anew(site: Site):
    site.execute(PUSHED)
    site.execute("INSERT INTO Sensor VALUES (1, 'kitchen')")
    site.execute("DROP TABLE Sensor")
    site.execute(PUSHED + "CREATE QUERY q AS SELECT * FROM Sensor")
    site.execute("INSERT INTO Sensor VALUES (2, 'hall')")
    site.settle()
    assert present(site, "q") == [(2, "hall")]


def test_a_script_with_a_row_that_can_not_be_taken_does_nothing_at_all(site: Site):
    site.execute(S + PUSHED + "CREATE QUERY q AS SELECT * FROM Sensor;")
    site.execute("INSERT INTO Sensor VALUES (1, 'kitchen')")
    flow(site, (10, 1))
    with pytest.raises(WrongUse, match=r"INSERT INTO S: .*Nothing of the script was run"):
        site.execute(
            "CREATE QUERY r AS SELECT a FROM S [Now]; CREATE TABLE T (a INTEGER);"
            "INSERT INTO Sensor VALUES (2, 'hall'); DELETE FROM Sensor WHERE id = 1;"
            "INSERT INTO T VALUES (5); INSERT INTO S VALUES (9, 1)"
        )
    assert {d.name for d in site.catalog.definitions.values()} == {"S", "Sensor", "q"}
    site.execute("INSERT INTO Sensor VALUES (3, 'attic')")
    site.settle()
    assert present(site, "q") == [(1, "kitchen"), (3, "attic")]
    (of_s,) = [s for s in site.streams() if s.name == "S"]
    assert (of_s.arrived, of_s.late, of_s.rejected) == (1, 0, 0)


def test_rows_go_into_what_the_same_script_creates(site: Site):
    site.execute(
        "CREATE TABLE T (a INTEGER, b INTEGER); INSERT INTO T VALUES (1, 2);"
        "CREATE STREAM U (a INTEGER) TIMESTAMP BY ts; INSERT INTO U VALUES (7, 1), (8, 2);"
        "CREATE QUERY qt AS SELECT * FROM T; CREATE QUERY qu AS SELECT a FROM U [Unbounded];"
        "CREATE TABLE Gone (a INTEGER); INSERT INTO Gone VALUES (1); DROP TABLE Gone"
    )
    site.settle()
    assert present(site, "qt") == [(1, 2)]
    assert present(site, "qu") == [(7,)]


def test_scripts_with_rows_and_pushes_do_not_wait_for_each_other_for_ever(site: Site):
    site.execute(S + PUSHED + "CREATE QUERY q AS SELECT * FROM Sensor;")
    done = threading.Event()

    def push() -> None:
        number = 0
        while not done.is_set():
            site.push("S", rows((number, 1)))
            number += 1

    threads = [threading.Thread(target=push) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(40):
        site.execute(f"INSERT INTO Sensor VALUES ({number}, 'a'); DELETE FROM Sensor WHERE id = -1")
    done.set()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    site.settle()
    assert len(present(site, "q")) == 40
