import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from thalweg import Thalweg
from thalweg.api.results import IncompleteHistory
from thalweg.cql import CqlError
from thalweg.engine.site import SiteError, Unknown, WrongUse

S = "CREATE STREAM S (a INTEGER, b VARCHAR) TIMESTAMP BY ts;"


@pytest.fixture
def session() -> Iterator[Thalweg]:
    with Thalweg.builder.master("in-process").config("durable", False).getOrCreate() as opened:
        yield opened


def test_a_query_from_rows_to_tables(session: Thalweg) -> None:
    session.cql(S)
    query = session.cql("SELECT a, COUNT(*) AS n FROM S [Range 10] GROUP BY a")
    session.stream("s").push([{"ts": 1, "a": 7, "b": "x"}, {"ts": 2, "a": 7, "b": None}])
    session.stream("S").finish()
    session.settle()
    results = query.results()
    assert [(r.ts, r.op, r.row) for r in results][:2] == [
        (1, "+", {"a": 7, "n": 1}),
        (2, "-", {"a": 7, "n": 1}),
    ]
    expected = {"_ts": [1, 2, 2, 12, 12, 13], "_op": ["+", "-", "+", "-", "+", "-"]}
    frame = results.to_polars()
    assert frame.columns == ["_ts", "_op", "a", "n"]
    assert frame.select("_ts", "_op").to_dict(as_series=False) == expected
    assert isinstance(results.to_arrow(), pa.Table)
    assert isinstance(results.to_pandas(), pd.DataFrame)
    assert results.to_pandas()["n"].tolist() == [1, 1, 2, 2, 1, 1]
    assert list(results) == list(query[0])


def test_the_relation_as_it_is_now(session: Thalweg) -> None:
    query = session.cql(S + "CREATE QUERY q AS SELECT a FROM S [Range 10]")
    session.stream("S").push([{"ts": 1, "a": 1}, {"ts": 2, "a": 1}, {"ts": 13, "a": 2}])
    session.settle()
    assert query.results().snapshot() == Counter({(1,): 1})


def test_a_snapshot_is_right_when_old_ticks_are_gone() -> None:
    builder = Thalweg.builder.master("in-process").config("durable", False)
    with builder.config("retained_ticks", 2).getOrCreate() as session:
        query = session.cql(S + "CREATE QUERY q AS SELECT a, COUNT(*) AS n FROM S GROUP BY a")
        for ts in range(8):
            session.stream("S").push([{"ts": ts, "a": ts % 2}])
            session.settle()
        assert query.results().snapshot() == Counter({(0, 4): 1, (1, 3): 1})
        assert query.content().to_dict(as_series=False) == {"a": [0, 1], "n": [4, 3]}
        assert session.select("SELECT n FROM q WHERE a = 1").to_dict(as_series=False) == {"n": [3]}
        with pytest.warns(IncompleteHistory, match="results before 5 are no longer kept"):
            query.results().to_polars()
        with pytest.warns(IncompleteHistory, match="late: S is at hand from"):
            session.cql("CREATE QUERY late AS SELECT a FROM S [Range 50]")


def test_no_rows_are_a_table_with_columns(session: Thalweg) -> None:
    query = session.cql(
        "CREATE STREAM D (x DECIMAL(10,2), t TIMESTAMP) TIMESTAMP BY t; SELECT x, t FROM D"
    )
    assert query.results().to_polars().schema == {
        "_ts": pl.Int64,
        "_op": pl.String,
        "x": pl.Decimal(38, 2),
        "t": pl.Datetime("us"),
    }


@pytest.mark.parametrize(
    "rows",
    [
        {"ts": 1, "a": 1, "b": "x"},
        [{"ts": 1, "a": 1, "b": "x"}],
        ({"ts": 1, "a": 1, "b": "x"} for _ in range(1)),
        pd.DataFrame({"ts": [1], "a": [1], "b": ["x"]}),
        pl.DataFrame({"ts": [1], "a": [1], "b": ["x"]}),
        pa.table({"ts": [1], "a": [1], "b": ["x"]}),
    ],
    ids=["dict", "dicts", "generator", "pandas", "polars", "arrow"],
)
def test_rows_come_in_any_form(session: Thalweg, rows: object) -> None:
    query = session.cql(S + "SELECT b FROM S")
    assert session.stream("S").push(rows).accepted == 1
    session.stream("S").finish()
    session.settle()
    assert [r.row for r in query.results()] == [{"b": "x"}]


def test_what_a_text_defines_is_one_query_or_several(session: Thalweg) -> None:
    assert session.cql(S) == ()
    one = session.cql("CREATE QUERY one AS SELECT a FROM S")
    assert one.name == "one"
    assert one.columns == {"a": "INTEGER"}
    assert len(one) == 1
    two = session.cql("SELECT a FROM S; SELECT b FROM S")
    assert [q.name for q in two] == ["q1", "q2"]
    assert two["Q2"].columns == {"b": "VARCHAR"}
    with pytest.raises(WrongUse, match="q1, q2"):
        two.results()
    with pytest.raises(KeyError):
        two["q3"]
    with pytest.raises(AttributeError):
        _ = two.nonsense
    assert [q.name for q in session.queries] == ["one", "q1", "q2"]
    assert [s.name for s in session.streams] == ["S"]


def test_mistakes_are_shown_with_their_place(session: Thalweg) -> None:
    with pytest.raises(CqlError) as error:
        session.cql("SELECT a FROM Nothing")
    assert "^" in str(error.value)
    with pytest.raises(Unknown):
        session.query("nothing")
    with pytest.raises(Unknown):
        session.stream("nothing")


def test_following_takes_rows_as_they_come(session: Thalweg) -> None:
    query = session.cql(S + "SELECT a FROM S")
    session.stream("S").push([{"ts": 1, "a": 1}, {"ts": 2, "a": 2}])
    found = []
    for result in query.results(follow=True, timeout_s=5):
        found.append(result.row["a"])
        if len(found) == 1:
            session.stream("S").push({"ts": 3, "a": 3})
        if len(found) == 2:
            session.stream("S").finish()
    assert found == [1, 2, 3]
    with pytest.raises(WrongUse, match="has an end"):
        query.results(follow=True).to_pandas()


def test_a_function_is_called_for_every_row(session: Thalweg) -> None:
    query = session.cql(S + "SELECT a FROM S")
    found: list[int] = []
    stop = query.on_rows(lambda result: found.append(result.row["a"]))
    session.stream("S").push([{"ts": 1, "a": 1}, {"ts": 2, "a": 2}])
    session.settle()
    stop()
    session.stream("S").finish()
    session.settle()
    assert found == [1]


def test_an_iterable_makes_its_own_stream(session: Thalweg) -> None:
    row = {"at": datetime(2025, 1, 1), "price": Decimal("1.50"), "n": 1, "ok": True, "name": "x"}
    stream = session.from_iterable("R", iter([row]), timestamp="at")
    assert "price DECIMAL(38,2), n BIGINT, ok BOOLEAN, name VARCHAR" in repr(stream)
    deadline = time.monotonic() + 120
    while stream.status().state != "ended" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert stream.status().arrived == 1


def test_an_iterable_feeds_a_stream_that_is_there(session: Thalweg) -> None:
    query = session.cql(S + "SELECT COUNT(*) AS n FROM S")
    session.from_iterable("S", ({"ts": i, "a": i} for i in range(25_000)))
    last = list(query.results(follow=True, timeout_s=20))[-1]
    assert last.row == {"n": 25_000}


def test_rows_that_say_no_type_are_refused(session: Thalweg) -> None:
    with pytest.raises(WrongUse, match="which says no type"):
        session.from_iterable("R", [{"ts": 1, "a": None}])
    with pytest.raises(WrongUse, match="have no ts"):
        session.from_iterable("R", [{"a": 1}])
    with pytest.raises(WrongUse, match="rows with names"):
        session.from_iterable("R", [(1, 2)])


def test_a_process_has_one_session(session: Thalweg, tmp_path: Path) -> None:
    assert Thalweg.builder.getOrCreate() is session
    with pytest.raises(SiteError, match="is open in this process"):
        Thalweg.builder.data_dir(tmp_path).getOrCreate()
    with pytest.raises(SiteError, match="there is no setting tick_row"):
        Thalweg.builder.config("tick_row", 1)


def test_a_temporary_folder_goes_with_the_session_and_another_stays(tmp_path: Path) -> None:
    with Thalweg.builder.master("in-process").getOrCreate() as first:
        folder = first.data_dir
        assert folder.exists()
    assert not folder.exists()
    kept = Thalweg.builder.master("in-process").data_dir(tmp_path / "kept")
    with kept.getOrCreate() as second:
        second.cql(S + "CREATE QUERY q AS SELECT a FROM S")
    with kept.getOrCreate() as third:
        assert third.query("q").columns == {"a": "INTEGER"}


def test_a_notebook_shows_columns_and_the_last_rows(session: Thalweg) -> None:
    query = session.cql(S + "CREATE QUERY q AS SELECT a, b FROM S")
    session.stream("S").push([{"ts": i, "a": i, "b": f"<{i}>"} for i in range(30)])
    session.settle()
    for shown in (query._repr_html_(), query.results()._repr_html_(), query[0]._repr_html_()):
        assert "<b>q</b> running, 29 rows" in shown
        assert "INTEGER" in shown
        assert "&lt;28&gt;" in shown
        assert "<28>" not in shown
        assert "&lt;2&gt;" not in shown.split("the last changes")[1]
        assert "after 19 earlier ones" in shown
    overview = session._repr_html_()
    assert '<td class="t">q</td>' in overview
    query.stop()
    assert "has been stopped" in query[0]._repr_html_()


def test_importing_the_package_is_light() -> None:
    import subprocess
    import sys

    code = "import sys, thalweg; print('polars' in sys.modules, 'pyspark' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout == "False False\n"


def test_a_notebook_shows_first_what_is_now_under_headers_on_the_same_side(
    session: Thalweg,
) -> None:
    session.cql("CREATE STREAM Seen (who VARCHAR, n INTEGER) TIMESTAMP BY ts")
    query = session.cql("SELECT who, SUM(n) AS n FROM Seen GROUP BY who")
    session.stream("Seen").push([{"ts": t, "who": "ada", "n": t} for t in (1, 2, 3)])
    session.settle()
    shown = query._repr_html_()
    now, changes = shown.split("changes</div>")
    assert "now: 1 rows" in now
    assert '<th class="t">who' in now
    assert '<td class="t">ada</td><td>3</td>' in now
    assert '<td class="t">1</td><td class="t">+</td>' in changes


def test_a_notebook_says_for_what_a_query_without_rows_waits(session: Thalweg) -> None:
    query = session.cql(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")
    assert "no rows yet: it waits for S: no tuple has come yet" in query._repr_html_()
    session.stream("S").push({"ts": 1, "a": 1, "b": "x"})
    session.settle()
    shown = query._repr_html_()
    assert (
        "no rows yet: nothing matched up to 1; what is later becomes final when S goes on" in shown
    )
    assert repr(query.results()).startswith("Results of q")


def test_a_query_that_is_replaced_is_the_same_object_with_other_columns(session: Thalweg) -> None:
    query = session.cql(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")[0]
    session.stream("S").push([{"ts": 1, "a": 1, "b": "x"}, {"ts": 2, "a": 2, "b": "y"}])
    session.settle()
    session.cql("CREATE OR REPLACE QUERY q AS SELECT a, 10 * a AS c FROM S [Range 100]")
    session.stream("S").push([{"ts": 3, "a": 3, "b": "z"}])
    session.settle()
    assert query.columns == {"a": "INTEGER", "c": "BIGINT"}
    assert query.results().snapshot() == Counter({(1, 10): 1, (2, 20): 1})
    table = query.results().to_polars()
    assert table.columns == ["_ts", "_op", "a", "c"]
    assert table.filter(pl.col("c").is_null())["_op"].to_list() == ["+", "-"]
