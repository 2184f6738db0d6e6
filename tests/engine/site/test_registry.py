import gc

import pytest
from tests.engine.site.conftest import OpenSite, rows, said

from thalweg.cql import CqlError, compile_script
from thalweg.engine.shared.state.runs import Runs
from thalweg.engine.site import Site, registry

BASE = "CREATE STREAM S (a INTEGER, b INTEGER) TIMESTAMP BY ts; CREATE VIEW V AS SELECT a FROM S"
QUERIES = (
    "; CREATE QUERY x AS SELECT a FROM S [Range 3]; CREATE QUERY y FROM NOW AS SELECT a FROM V"
)


def restarted(site: Site, open_here: OpenSite) -> Site:
    site.close()
    return open_here()


def test_queries_stand_again_after_a_restart_parcel_by_parcel(
    open_here: OpenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = open_here()
    site.execute(BASE + QUERIES)
    site.execute("SELECT b FROM S [Range 3]")
    site.execute("".join(f"CREATE QUERY z{i} AS SELECT a FROM S WHERE a > {i};" for i in range(9)))
    site.book.park("z4", 1, "it was too much")
    monkeypatch.setattr(registry, "PARCEL", 2)
    site = restarted(site, open_here)
    names = ["x", "y", "q1", *(f"z{i}" for i in range(9))]
    assert [q.name for q in site.catalog.queries()] == names
    assert [q.name for q in site.catalog.queries() if q.from_now] == ["y"]
    assert sorted(site.engine.roster.queries) == sorted(n for n in names if n != "z4")
    site.push("S", rows((1, 7), (9, 8)).with_columns(b=3))
    site.settle()
    assert said(site, "x") == [(1, "+", 7), (5, "-", 7)]
    assert said(site, "z6") == [(1, "+", 7)]
    # Who asks for the plan has it made again, from a bare text, too.
    assert site.explain("q1").text == "Project b\n  Window [Range 3]\n    Stream S"


def test_a_restart_writes_nothing_about_queries_that_are_known(
    open_here: OpenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = open_here()
    site.execute(BASE + QUERIES)
    written: list[object] = []
    monkeypatch.setattr(Runs, "begin", lambda _, queries: written.extend(queries))
    restarted(site, open_here)
    assert written == []


def test_a_statement_that_is_not_taken_any_more_is_set_aside(open_here: OpenSite) -> None:
    site = open_here()
    site.execute(BASE + QUERIES)
    with site.engine.store.transaction() as db:
        db.execute("UPDATE definitions SET text = replace(text, '[Range 3]', '[Raneg 3]')")
    again = restarted(site, open_here)
    parked = [q for q in again.queries() if q.state == "parked"]
    assert parked
    assert all("Raneg" in (q.error or "") for q in parked)
    assert len(parked) < len(again.queries())


def test_what_was_dropped_and_made_again_is_what_it_is_now(open_here: OpenSite) -> None:
    site = open_here()
    site.execute(BASE + QUERIES)
    site.execute("DROP QUERY y; DROP VIEW V; CREATE VIEW V AS SELECT b AS a FROM S")
    site.execute("CREATE QUERY y FROM NOW AS SELECT a FROM V; DROP QUERY x")
    site = restarted(site, open_here)
    assert [q.name for q in site.catalog.queries()] == ["y"]
    assert "Project b AS a" in site.explain("y").text
    site.push("S", rows((1, 7), (9, 8)).with_columns(b=3))
    site.settle()
    assert said(site, "y") == [(1, "+", 3)]


def test_the_collector_is_on_again_whatever_happens(site: Site) -> None:
    site.execute(BASE)
    assert gc.isenabled()
    with pytest.raises(CqlError):
        site.execute("SELECT nothing FROM S")
    assert gc.isenabled()


def test_queries_that_rest_hold_their_streams_and_answer_as_before(site: Site) -> None:
    site.execute(BASE + QUERIES)
    with pytest.raises(CqlError, match=r'"S" is still used by view V, query x, query y'):
        site.drop_stream("S")
    with pytest.raises(CqlError, match=r'"V" is still used by query y'):
        site.execute("DROP VIEW V")
    x, y = site.queries()
    assert (x.columns, x.streams, x.kind) == ([("a", "INTEGER")], ["S"], "relation")
    assert y.streams == ["S"]
    assert site.query("x").plan == compile_script(BASE + QUERIES).catalog.find("x").plan  # type: ignore[union-attr]
