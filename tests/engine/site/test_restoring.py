"""A start with texts that this version does not understand: they are set aside, the rest runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.engine.site.conftest import OpenSite, rows, said

from thalweg.cql import CqlError, compile_script
from thalweg.cql.bind import statements
from thalweg.cql.errors import Mistake
from thalweg.engine.shared.replacing import CannotReplace
from thalweg.engine.site import Site
from thalweg.engine.site.errors import WrongUse

S = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts;"
GOOD = "CREATE QUERY good AS SELECT a FROM S [Range 100];"
BAD = "CREATE QUERY bad AS SELECT UPPER('x') AS u, a FROM S [Rows 50];"  # by itself

Without = Callable[[str], Any]


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Without:
    """A version that does not understand texts with a word in them."""
    created = statements._created

    @contextmanager
    def forget(word: str) -> Iterator[None]:
        def refuse(statement: Any, catalog: Any, text: str, name: str) -> Any:
            start, end = statement.span
            if word in text[start:end]:
                raise Mistake(f"there is no {word} any more", statement.span)
            return created(statement, catalog, text, name)

        with monkeypatch.context() as patched:
            patched.setattr(statements, "_created", refuse)
            patched.setattr("thalweg.cql.compile._TEMPLATES.recall", lambda *_: None)
            yield

    return forget


def step(site: Site, *stamped: tuple[int, int]) -> None:
    site.push("S", rows(*stamped))
    site.settle()


def states(site: Site) -> dict[str, str]:
    return {q.name: q.state for q in site.queries()}


def held(site: Site, query: str) -> list[tuple]:
    found: list[tuple] = []
    for _, op, *row in said(site, query):
        found.append(tuple(row)) if op == "+" else found.remove(tuple(row))
    return sorted(found)


def test_the_others_run_and_the_reason_is_told(open_here: OpenSite, without: Without) -> None:
    site = open_here()
    site.execute(S + GOOD + BAD)
    step(site, (1, 1), (2, 2))
    before = said(site, "bad")
    site.close()
    with without("UPPER"):
        site = open_here()
        assert states(site) == {"good": "running", "bad": "parked"}
        (bad,) = [q for q in site.queries() if q.name == "bad"]
        assert bad.error == "tick 1: this version can't run it: there is no UPPER any more"
        assert bad.columns == [("u", "VARCHAR"), ("a", "INTEGER")]
        assert any("query bad is parked" in p for p in site.health().problems)
        assert site.health().ok
        step(site, (5, 5), (6, 6))
        assert said(site, "good")[-1] == (5, "+", 5)
        assert said(site, "bad") == before
        with pytest.raises(CqlError, match="no UPPER any more"):
            site.explain("bad")


def test_it_is_dropped_or_replaced_and_sinks_and_readers_stay(
    open_here: OpenSite, without: Without, tmp_path: Path
) -> None:
    site = open_here()
    site.execute(
        S + GOOD + BAD + BAD.replace("bad", "worse") + "CREATE SINK out FROM bad INTO 'out.jsonl'"
    )
    step(site, (1, 1), (2, 2))
    site.close()
    with without("UPPER"):
        site = open_here()
        site.execute("DROP QUERY worse")
        step(site, (3, 3))
        site.execute("CREATE OR REPLACE QUERY bad AS SELECT 'X' AS u, a FROM S [Range 100]")
        step(site, (7, 7), (8, 8))
        assert states(site) == {"good": "running", "bad": "running"}
        # The new version says only what is different: the rows of 2 and later.
        assert [r for r in said(site, "bad") if r[1] == "+"] == [
            (1, "+", "X", 1),
            (3, "+", "X", 2),
            (3, "+", "X", 3),
            (7, "+", "X", 7),
        ]
        assert not any(r[1] == "-" for r in said(site, "bad"))
        written = (tmp_path / "out.jsonl").read_text().splitlines()
        assert len([line for line in written if '"op":"+"' in line]) == 4


def test_a_replacement_with_other_columns_takes_back_what_stood(
    open_here: OpenSite, without: Without
) -> None:
    site = open_here()
    site.execute(S + GOOD + BAD)
    step(site, (1, 1), (2, 2))
    site.close()
    with without("UPPER"):
        site = open_here()
        site.execute("CREATE OR REPLACE QUERY bad AS SELECT a FROM S [Range 100]")
        step(site, (7, 7))
        assert held(site, "bad") == [(1,), (2,)]
        assert (2, "-", "X", 1) in said(site, "bad")


def test_a_version_that_understands_it_goes_on_if_no_tick_was_missed(
    open_here: OpenSite, without: Without
) -> None:
    site, twin = open_here(), open_here("twin")
    for each in (site, twin):
        each.execute(S + GOOD + BAD)
        step(each, (1, 1), (2, 2))
    site.close()
    with without("UPPER"):
        open_here().close()
    site = open_here()
    for each in (site, twin):
        step(each, (5, 5), (120, 6))
    assert states(site) == {"good": "running", "bad": "running"}
    assert said(site, "bad") == said(twin, "bad")


def test_once_a_tick_was_missed_it_stays_parked(open_here: OpenSite, without: Without) -> None:
    site = open_here()
    site.execute(S + GOOD + BAD)
    step(site, (1, 1), (2, 2))
    site.close()
    with without("UPPER"):
        site = open_here()
        step(site, (5, 5))
        site.close()
    site = open_here()
    assert states(site) == {"good": "running", "bad": "parked"}
    site.execute("CREATE OR REPLACE " + BAD.removeprefix("CREATE "))
    step(site, (9, 9), (10, 10))
    assert states(site)["bad"] == "running"
    assert held(site, "bad") == [("X", n) for n in (1, 2, 5, 9)]


def test_a_tick_that_was_written_down_is_run_without_it(
    open_here: OpenSite, without: Without, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = open_here()
    site.execute(S + GOOD + BAD)
    step(site, (1, 1), (2, 2))

    def crash(*_: object) -> list[bytes]:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(site.engine.executor, "run", crash)
        site.push("S", rows((5, 5), (6, 6)))
        while site.ticker.error is None:
            pass
        site.close()
    assert site.engine is not None
    with without("UPPER"):
        site = open_here()
        site.settle()
        assert said(site, "good")[-1] == (5, "+", 5)
        assert states(site) == {"good": "running", "bad": "parked"}


def test_a_view_and_all_that_reads_it(open_here: OpenSite, without: Without) -> None:
    site = open_here()
    view = "CREATE VIEW V AS SELECT UPPER('x') AS u, a FROM S [Range 100];"
    site.execute(S + GOOD + view + "CREATE QUERY reader AS SELECT DISTINCT a FROM V WHERE u = 'X'")
    site.execute("CREATE QUERY member AS SELECT a FROM V WHERE u = 'X'")
    step(site, (1, 1), (2, 2))
    site.close()
    with without("UPPER"):
        site = open_here()
        assert states(site) == {"good": "running", "reader": "parked", "member": "parked"}
        assert "view V is set aside: there is no UPPER any more" in site.health().problems
        with pytest.raises(CqlError, match='view "V" is set aside: there is no UPPER any more'):
            site.execute("SELECT a FROM V")
        with pytest.raises(CqlError, match="still used by query reader"):
            site.execute("DROP VIEW V")
        # The view is replaced, and its reader with it; but not one whose rows are not its own.
        site.execute("CREATE OR REPLACE VIEW V AS SELECT 'X' AS u, a FROM S [Range 100]")
        step(site, (7, 7), (8, 8))
        assert states(site) == {"good": "running", "reader": "running", "member": "parked"}
        assert held(site, "reader") == [(1,), (2,), (7,)]
        site.execute("DROP QUERY member; CREATE QUERY member AS SELECT a FROM V WHERE u = 'X'")
        step(site, (9, 9))
        assert held(site, "member") == [(1,), (2,), (7,), (8,)]
        site.execute("DROP QUERY reader; DROP QUERY member; DROP VIEW V")


def test_a_stream_can_be_dropped_once_nothing_reads_it(
    open_here: OpenSite, without: Without
) -> None:
    site = open_here()
    site.execute(S + GOOD + "CREATE STREAM Old (b INTEGER) TIMESTAMP BY ts;")
    site.execute("CREATE QUERY o AS SELECT b FROM Old [Now]")
    site.push("Old", pl.DataFrame({"ts": [1], "b": [1]}))
    step(site, (1, 1))
    site.close()
    with without("Old (b"):
        site = open_here()
        assert states(site) == {"good": "running", "o": "parked"}
        site.execute("DROP QUERY o; DROP STREAM Old")
        site.execute("CREATE STREAM Other (b INTEGER) TIMESTAMP BY ts")
        site.close()
        assert [s.name for s in open_here().streams()] == ["S", "Other"]


def test_members_of_a_group_go_and_the_others_stay(open_here: OpenSite, without: Without) -> None:
    site, twin = open_here(), open_here("twin")
    queries = [f"CREATE QUERY q{i} AS SELECT a FROM S [Range 100] WHERE a > {i};" for i in range(4)]
    counts = [
        f"CREATE QUERY c{i} AS SELECT COUNT(*) AS n FROM S [Range 100] WHERE a > {i};"
        for i in range(4)
    ]
    for each in (site, twin):
        each.execute(S + "".join(queries + counts))
        for n in range(4):
            step(each, (n, n), (n, 3))
    assert any(q.group for q in site.queries())
    site.close()
    with without("> 3"):
        site = open_here()
        for each in (site, twin):
            step(each, (9, 9), (10, 10), (200, 1))
        assert {n for n, s in states(site).items() if s == "parked"} == {"q3", "c3"}
        for name in ("q0", "q1", "q2", "c0", "c1", "c2"):
            assert said(site, name) == said(twin, name)
        for name in ("q3", "c3"):
            if site.engine.can_read(name):
                assert said(site, name) == said(twin, name)[: len(said(site, name))]
            else:
                with pytest.raises(WrongUse, match="its rows can't be told"):
                    said(site, name)
                with pytest.raises(CannotReplace, match="DROP it and CREATE it anew"):
                    site.execute(f"CREATE OR REPLACE QUERY {name} AS SELECT a FROM S [Range 9]")
        site.execute("DROP QUERY q3; DROP QUERY c3")


def test_without_a_shape_it_can_be_dropped(open_here: OpenSite, without: Without) -> None:
    """In a data directory of a version that wrote no shapes down."""
    site = open_here()
    site.execute(S + BAD)
    step(site, (1, 1), (2, 2))
    with site.engine.store.transaction() as db:
        db.execute("DELETE FROM shapes")
    site.close()
    with without("UPPER"):
        site = open_here()
        assert states(site) == {"bad": "parked"}
        with pytest.raises(CannotReplace, match="DROP it and CREATE it anew"):
            site.execute("CREATE OR REPLACE QUERY bad AS SELECT a FROM S [Range 9]")
        site.execute("DROP QUERY bad")
        assert states(site) == {}


def test_a_disk_that_is_full_stops_the_start_and_parks_nobody(
    open_here: OpenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = open_here()
    site.execute(S + GOOD)
    site.close()
    with monkeypatch.context() as patched:

        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        patched.setattr("thalweg.engine.shared.engine.SharedEngine.add_queries", full)
        with pytest.raises(OSError, match="No space"):
            open_here()
    assert states(open_here()) == {"good": "waiting"}


def test_compile_script_is_the_same_again() -> None:
    assert compile_script(S + BAD).queries[0].name == "bad"
