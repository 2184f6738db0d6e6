"""ALTER STREAM … ADD COLUMN: NULL for older tuples, and queries that stand go on as they are."""

import time
from pathlib import Path

import polars as pl
import pytest
from tests.engine.site.conftest import OpenSite, rows, said

from thalweg.cql import CqlError
from thalweg.engine.site import Site

S = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts;"


def wide(*stamped: tuple[int, int, int | None]) -> pl.DataFrame:
    schema = {"ts": pl.Int64, "a": pl.Int64, "b": pl.Int64}
    return pl.DataFrame(stamped, schema, orient="row")


def test_older_tuples_have_null_in_a_new_column(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")
    site.push("S", rows((1, 10), (2, 20)))
    site.settle()
    site.execute("ALTER STREAM S ADD COLUMN b INTEGER")
    site.execute("CREATE QUERY r AS SELECT a, b FROM S [Range 100]")
    site.push("S", wide((3, 30, 300), (4, 40, 400)))
    site.settle()
    assert said(site, "r") == [(2, "+", 10, None), (2, "+", 20, None), (3, "+", 30, 300)]
    assert said(site, "q") == [(1, "+", 10), (2, "+", 20), (3, "+", 30)]


def test_tuples_that_have_landed_and_wait_have_null_too(site: Site) -> None:
    site.execute(S)
    site.push("S", rows((1, 10), (2, 20)))
    site.execute("ALTER STREAM S ADD b INTEGER; CREATE QUERY r AS SELECT a, b FROM S [Range 100]")
    site.push("S", wide((3, 30, 300), (4, 40, 400)))
    site.settle()
    assert said(site, "r")[-1] == (3, "+", 30, 300)


def test_star_of_an_older_query_keeps_its_columns_also_after_a_restart(open_here: OpenSite) -> None:
    site = open_here()
    site.execute(
        S + "CREATE VIEW V AS SELECT * FROM S [Range 50];"
        "CREATE QUERY star AS SELECT * FROM S [Range 50];"
        "CREATE QUERY n AS SELECT a, COUNT(*) AS n FROM V GROUP BY a;"
        "CREATE QUERY j AS SELECT x.a, y.a FROM S [Range 50] x, S [Range 50] y WHERE x.a = y.a;"
        "CREATE QUERY k AS SELECT * FROM S [Rows 2]"
    )
    site.push("S", rows((1, 10), (2, 10)))
    site.settle()
    site.execute("ALTER STREAM S ADD COLUMN b INTEGER")
    site.execute(
        "CREATE QUERY late AS SELECT * FROM S [Range 50];"
        "CREATE QUERY both AS SELECT x.a, y.b FROM V x, S [Range 50] y WHERE x.a = y.a"
    )
    site.push("S", wide((3, 10, 1), (4, 11, 2)))
    site.settle()
    site.close()
    site = open_here()
    site.push("S", wide((5, 11, 3), (6, 12, 4)))
    site.settle()
    assert said(site, "star") == [
        (t, "+", a) for t, a in ((1, 10), (2, 10), (3, 10), (4, 11), (5, 11))
    ]
    assert said(site, "n")[-2:] == [(5, "-", 11, 1), (5, "+", 11, 2)]
    assert len([r for r in said(site, "j") if r[1] == "+"]) == 9 + 4
    assert said(site, "k")[-2:] == [(5, "-", 10), (5, "+", 11)]
    assert said(site, "late") == [
        (2, "+", 10, None),
        (2, "+", 10, None),
        (3, "+", 10, 1),
        (4, "+", 11, 2),
        (5, "+", 11, 3),
    ]
    assert [c for c, _ in site.streams()[0].columns] == ["a", "b"]
    assert site.explain("star").text.count("b INTEGER") == 0
    both = [r[2:] for r in said(site, "both") if r[1] == "+"]
    assert sorted(both, key=str) == sorted(
        [(10, None)] * 6 + [(10, 1)] * 3 + [(11, 2)] * 2 + [(11, 3)] * 2, key=str
    )


def test_a_tuple_without_the_new_column_is_taken(site: Site) -> None:
    site.execute(S + "ALTER STREAM S ADD COLUMN b INTEGER; CREATE QUERY q AS SELECT a, b FROM S")
    receipt = site.push("S", wide((1, 10, None)))
    assert receipt.accepted == 1


def test_a_relation_gets_a_column(site: Site) -> None:
    site.execute(
        "CREATE RELATION R (a INTEGER) TIMESTAMP BY ts; CREATE QUERY old AS SELECT * FROM R"
    )
    change = {"ts": [1, 2], "op": ["+", "+"], "a": [10, 20]}
    site.push("R", pl.DataFrame(change))
    site.settle()
    site.execute("ALTER RELATION R ADD COLUMN b VARCHAR; CREATE QUERY new AS SELECT a, b FROM R")
    later = {"ts": [3, 4, 4], "op": ["+", "-", "-"], "a": [30, 20, 77], "b": ["x", None, None]}
    site.push("R", pl.DataFrame(later))
    site.push("R", pl.DataFrame({"ts": [6], "op": ["+"], "a": [40], "b": ["y"]}))
    site.settle()
    assert said(site, "old")[-2:] == [(3, "+", 30), (4, "-", 20)]
    assert said(site, "new")[-2:] == [(3, "+", 30, "x"), (4, "-", 20, None)]
    assert site.streams()[0].rejected == 1


def test_a_stream_that_was_dropped_is_made_anew_without_the_column(open_here: OpenSite) -> None:
    site = open_here()
    site.execute(S + "ALTER STREAM S ADD COLUMN b INTEGER; DROP STREAM S;" + S)
    site.close()
    site = open_here()
    assert [c for c, _ in site.streams()[0].columns] == ["a"]
    with pytest.raises(CqlError):
        site.execute("CREATE QUERY q AS SELECT b FROM S")


def test_producers_that_do_not_know_the_column_yet_go_on(site: Site, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("ts,a\n1,10\n2,20\n")
    site.execute(S + "CREATE STREAM F (a INTEGER) TIMESTAMP BY ts FROM 'f.csv'")
    site.execute("ALTER STREAM S ADD COLUMN b INTEGER; ALTER STREAM F ADD COLUMN b INTEGER")
    assert site.push("S", rows((1, 10))).accepted == 1
    site.settle()
    assert [(s.name, s.rejected, s.error) for s in site.streams()] == [
        ("S", 0, None),
        ("F", 0, None),
    ]


def test_a_file_without_the_new_column_is_read_on(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("ts,a\n1,10\n")
    site.execute(
        "CREATE STREAM F (a INTEGER) TIMESTAMP BY ts FROM 'f.csv' OPTIONS (watch 'true');"
        "ALTER STREAM F ADD COLUMN b INTEGER; CREATE QUERY q AS SELECT a, b FROM F [Now]"
    )
    with path.open("a") as file:
        file.write("2,20\n3,30\n")
    until = time.monotonic() + 120
    while site.streams()[0].arrived < 3 and time.monotonic() < until:
        time.sleep(0.02)
    site.settle()
    assert (2, "+", 20, None) in said(site, "q")
