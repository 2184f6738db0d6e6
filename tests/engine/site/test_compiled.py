import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engine.site.conftest import OpenSite, rows, said

from thalweg.cql import CqlError, compile_script
from thalweg.engine.shared.store import Store
from thalweg.engine.site import Site, compiled
from thalweg.engine.site.compiled import Compiled
from thalweg.plan.catalog import Catalog

BASE = "CREATE STREAM S (a INTEGER, b INTEGER) TIMESTAMP BY ts; CREATE VIEW V AS SELECT a FROM S"
QUERIES = (
    "; CREATE QUERY x AS SELECT a FROM S [Range 3]; CREATE QUERY y FROM NOW AS SELECT a FROM V"
)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Compiled]:
    store = Store(tmp_path / "data", durable=False)
    yield Compiled(store, compile_script)
    store.close()


def catalog_of(text: str) -> Catalog:
    return compile_script(text).catalog


def test_plans_come_back_as_they_were_over_the_streams_that_stand(kept: Compiled) -> None:
    catalog = catalog_of(BASE + QUERIES)
    kept.keep(catalog.queries(), catalog)
    again = catalog_of(BASE)
    found = kept.plans(again)
    assert {name: from_now for (name, _), (_, from_now) in found.items()} == {"x": False, "y": True}
    for query in catalog.queries():
        plan, _ = found[query.name, query.text]
        assert plan == query.plan
    (scan,) = again.streams()
    plan, _ = found["x", catalog.find("x").text]  # type: ignore[union-attr]
    assert plan.input.input.stream is scan  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "changed",
    [
        BASE.replace("b INTEGER", "c INTEGER"),
        BASE.replace("SELECT a FROM S", "SELECT b AS a FROM S"),
        BASE.split(";", maxsplit=1)[0],
        "CREATE STREAM T (a INTEGER) TIMESTAMP BY ts",
    ],
)
def test_plans_over_other_streams_or_views_are_not_used(kept: Compiled, changed: str) -> None:
    catalog = catalog_of(BASE + QUERIES)
    kept.keep(catalog.queries(), catalog)
    assert kept.plans(catalog_of(changed)) == {}


def test_views_that_came_later_do_not_matter(kept: Compiled) -> None:
    catalog = catalog_of(BASE + QUERIES)
    kept.keep(catalog.queries(), catalog)
    assert len(kept.plans(catalog_of(BASE + "; CREATE VIEW W AS SELECT b FROM S"))) == 2


def test_plans_of_other_code_are_not_used(kept: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = catalog_of(BASE + QUERIES)
    kept.keep(catalog.queries(), catalog)
    monkeypatch.setattr(compiled, "_fingerprint", lambda _: "another version")
    assert Compiled(kept._store, compile_script).plans(catalog) == {}


# --- in a site


class Counting:
    """The compiler, and what it was asked to compile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        monkeypatch.setattr("tests.engine.site.conftest.compile_script", self)
        self.__module__ = compile_script.__module__

    def __call__(self, text: str, catalog: Catalog, *, name: str) -> object:
        self.texts.append(text)
        return compile_script(text, catalog, name=name)


def restarted(site: Site, open_here: OpenSite) -> Site:
    site.close()
    return open_here()


def test_a_restart_compiles_no_query_again(
    open_here: OpenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = Counting(monkeypatch)
    site = open_here()
    site.execute(BASE + QUERIES)
    site.execute("SELECT b FROM S [Range 3]")
    compiler.texts.clear()
    site = restarted(site, open_here)
    assert all("QUERY" not in text for text in compiler.texts)
    assert [q.name for q in site.catalog.queries()] == ["x", "y", "q1"]
    assert [q.from_now for q in site.catalog.queries()] == [False, True, False]
    site.push("S", rows((1, 7), (9, 8)).with_columns(b=3))
    site.settle()
    assert said(site, "x") == [(1, "+", 7), (5, "-", 7)]
    # Who asks for the plan has it made again, from a bare text, too.
    assert site.explain("q1").text == "Project b\n  Window [Range 3]\n    Stream S"


def test_what_was_dropped_and_made_again_is_what_it_is_now(
    open_here: OpenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = open_here()
    site.execute(BASE + QUERIES)
    site.execute("DROP QUERY y; DROP VIEW V; CREATE VIEW V AS SELECT b AS a FROM S")
    site.execute("CREATE QUERY y FROM NOW AS SELECT a FROM V; DROP QUERY x")
    for _ in range(2):  # with the parcels as they came, and with those written anew
        site = restarted(site, open_here)
        assert [q.name for q in site.catalog.queries()] == ["y"]
        assert "Project b AS a" in site.explain("y").text
    site.push("S", rows((1, 7), (9, 8)).with_columns(b=3))
    site.settle()
    assert said(site, "y") == [(1, "+", 3)]
    compiler = Counting(monkeypatch)
    restarted(site, open_here)
    assert all("QUERY" not in text for text in compiler.texts)


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
