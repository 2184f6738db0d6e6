"""What is now: contents of results, and SELECTs that are answered once."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.generators import Workload, workloads
from tests.drawn import examples
from tests.engine.shared.flowing import ALWAYS, NEVER, Flowing
from tests.engine.site.conftest import OpenSite, rows, said

from thalweg.cql import CqlError, compile_script
from thalweg.engine import reference
from thalweg.engine.site import Forgotten, Site, WrongUse, now
from thalweg.engine.site.backup import restore
from thalweg.plan.nodes import Aggregate, base_streams, walk

S = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts BIGINT;"
R = "CREATE RELATION R (a INTEGER, b VARCHAR) TIMESTAMP BY ts BIGINT;"


def test_the_content_of_a_result_does_not_depend_on_retained_ticks(open_here: OpenSite) -> None:
    site = open_here(retained_ticks=2)
    site.execute(
        S
        + "CREATE QUERY window AS SELECT a FROM S [Range 10];"
        + "CREATE QUERY latest AS SELECT a FROM S [Rows 2];"
        + "CREATE QUERY counted AS SELECT a, COUNT(*) AS n FROM S GROUP BY a;"
    )
    for ts in range(12):
        site.push("S", rows((ts, ts % 3)))
        site.settle()
    assert len(said(site, "counted")) < 12
    content = {q: site.content(q) for q in ("window", "latest", "counted")}
    assert {c.at for c in content.values()} == {"10"}
    assert sorted(content["window"].tuples()) == sorted((ts % 3,) for ts in range(11))
    assert list(content["latest"].tuples()) == [(0,), (1,)]
    assert list(content["counted"].tuples()) == [(0, 4), (1, 4), (2, 3)]


def test_contents_survive_restarts_and_go_with_their_query(open_here: OpenSite) -> None:
    query = "CREATE QUERY counted AS SELECT a, COUNT(*) AS n FROM S GROUP BY a;"
    site = open_here(retained_ticks=1)
    site.execute(S + query)
    for ts in range(6):
        site.push("S", rows((ts, 1)))
        site.settle()
    site.close()
    site = open_here(retained_ticks=1)
    assert list(site.content("counted").tuples()) == [(1, 5)]
    site.execute("DROP QUERY counted;" + query)
    for ts in range(6, 9):
        site.push("S", rows((ts, 1)))
        site.settle()
    # Of the stream itself only what a query looks at was kept: the last two instants.
    assert list(site.content("counted").tuples()) == [(1, 4)]


def test_contents_are_part_of_a_backup(open_here: OpenSite, tmp_path: Path) -> None:
    site = open_here(retained_ticks=1)
    site.execute(S + "CREATE QUERY counted AS SELECT a, COUNT(*) AS n FROM S GROUP BY a;")
    for ts in range(6):
        site.push("S", rows((ts, 1)))
        site.settle()
    site.back_up(tmp_path / "backup.tar.gz")
    restore(tmp_path / "backup.tar.gz", tmp_path / "restored")
    restored = open_here("restored", retained_ticks=1)
    restored.push("S", rows((6, 1)))
    restored.settle()
    assert list(restored.content("counted").tuples()) == [(1, 6)]


def test_a_new_version_that_has_not_spoken_holds_what_the_old_one_held(
    open_here: OpenSite,
) -> None:
    site = open_here(retained_ticks=2)
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 10];")
    for ts in range(6):
        site.push("S", rows((ts, ts)))
        site.settle()
    site.execute("CREATE OR REPLACE QUERY q AS SELECT a FROM S [Range 20] WHERE a > 2")
    for _ in range(2):
        found = site.content("q")
        assert (found.at, list(found.tuples())) == ("4", [(a,) for a in range(5)])
        answer = site.select("SELECT COUNT(*) AS n FROM q")
        assert (answer.at, list(answer.tuples())) == ("4", [(5,)])
        site.close()
        site = open_here(retained_ticks=2)
    site.push("S", rows((6, 6)))
    site.settle()
    found = site.content("q")
    assert (found.at, list(found.tuples())) == ("5", [(3,), (4,), (5,)])
    # Of another version's columns there is nothing to be shown under the new ones.
    site.execute("CREATE OR REPLACE QUERY q AS SELECT a, a AS b FROM S [Range 20]")
    assert site.content("q").at is None
    with pytest.raises(WrongUse, match="no instant is final yet: query q begins with"):
        site.select("SELECT a FROM q")


def test_a_stream_has_no_content(site: Site) -> None:
    site.execute(S + "CREATE QUERY news AS ISTREAM (SELECT a FROM S [Range 2]);")
    with pytest.raises(WrongUse, match="news is a stream \\(ISTREAM\\)"):
        site.content("news")


def test_before_an_instant_is_final_there_is_nothing(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 2];")
    found = site.content("q")
    assert (found.at, found.rows.height) == (None, 0)
    with pytest.raises(WrongUse, match="no instant is final yet: S waits for a first tuple"):
        site.select("SELECT a FROM S [Range 2]")


@pytest.fixture
def busy(site: Site) -> Site:
    """A stream of which ten instants are kept, a relation, and a result."""
    site.execute(
        S.replace(";", " RETAIN 10;")
        + R
        + "CREATE QUERY counted AS SELECT a, COUNT(*) AS n FROM S GROUP BY a;"
        + "CREATE QUERY news AS ISTREAM (SELECT a FROM S [Range 2]);"
    )
    changes = [(1, "+", 1, "one"), (2, "+", 2, "two"), (3, "-", 1, "one")]
    site.push("R", pl.DataFrame(changes, schema=["ts", "op", "a", "b"], orient="row"))
    site.push("S", rows(*((ts, ts % 3) for ts in range(20))))
    site.heartbeat("R", 19)
    site.settle()
    return site


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("SELECT * FROM R", [(2, "two")]),
        ("SELECT * FROM counted", [(0, 7), (1, 6), (2, 6)]),
        ("SELECT n FROM counted WHERE a = 2;", [(6,)]),
        ("SELECT a FROM S [Range 1]", [(0,), (2,)]),
        ("SELECT COUNT(*) AS n FROM S [Range 8]", [(9,)]),
        ("SELECT DISTINCT b, n FROM R, counted WHERE R.a = counted.a", [("two", 6)]),
        ("SELECT S.a, b FROM S [Range 2], R WHERE S.a = R.a", [(2, "two")]),
        ("SELECT MAX(n) AS most FROM counted", [(7,)]),
        ("SELECT a FROM counted EXCEPT SELECT a FROM R", [(0,), (1,)]),
    ],
)
def test_a_select_is_answered_once(busy: Site, text: str, answer: list[tuple]) -> None:
    found = busy.select(text)
    assert list(found.tuples()) == answer
    assert found.at == "18"
    assert [q.name for q in busy.queries()] == ["counted", "news"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "SELECT a FROM S [Range 15]",
            "S is at hand from 9 on, so \\[Range 15\\] is filling until 24.*RETAIN 15",
        ),
        ("SELECT a FROM S", "will never have what came before"),
        ("SELECT a FROM news", "news is a stream: it has no content to be read once"),
        ("ISTREAM (SELECT a FROM S [Range 2])", "a stream goes on"),
        ("DROP QUERY counted", "one SELECT is answered at once"),
        ("CREATE QUERY x AS SELECT a FROM S [Range 2]", "one SELECT is answered at once"),
        ("SELECT * FROM R; SELECT * FROM R", "one SELECT is answered at once"),
    ],
)
def test_what_can_not_be_answered_is_refused(busy: Site, text: str, message: str) -> None:
    with pytest.raises(WrongUse, match=message):
        busy.select(text)
    assert [q.name for q in busy.queries()] == ["counted", "news"]


def test_a_mistake_is_shown_in_the_text(busy: Site) -> None:
    with pytest.raises(CqlError, match="there is no column"):
        busy.select("SELECT nothing FROM counted")


@settings(
    max_examples=examples(6),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    workloads(queries=4, with_history=True),
    st.sampled_from([NEVER, ALWAYS]),
    st.sampled_from([1, 1_000]),
)
def test_a_select_gives_the_references_rows_at_its_instant(
    workload: Workload, changes: int, retained_ticks: int
):
    """Two of the queries stand, the others are asked after every tick."""
    with tempfile.TemporaryDirectory() as folder:
        running = Flowing(
            Path(folder), workload, changes_before_reducing=changes, retained_ticks=retained_ticks
        )
        standing, asked = running.script.queries[:2], running.script.queries[2:]
        running.submit(list(standing))
        catalog = running.script.catalog
        for query in asked:
            catalog = catalog.without(query.name)
        site = cast(
            Any, SimpleNamespace(engine=running.engine, catalog=catalog, compiler=compile_script)
        )
        while running.waiting:
            running.flow(2)
            for query in asked:
                _, _, text = query.text.partition(" AS ")
                try:
                    found = now.select(site, text)
                except (WrongUse, Forgotten):
                    continue
                assert found.instant is not None
                at, horizons = found.instant, {}
                if any(isinstance(n, Aggregate) and not n.keys for n in walk(query.plan)):
                    # Whether its row was ever there is as far as history goes.
                    names = [s.name for s in base_streams(query.plan)]
                    horizons = now._horizons(site, query.plan, at, names)
                expected = reference.evaluate(
                    query.plan, workload.inputs, start=at, horizons=horizons
                )
                bag = Counter(c.row for c in expected if c.ts == at)
                assert Counter(found.tuples()) == bag, f"{text} at {at}"
        running.engine.close()


def test_a_table_that_has_not_changed_is_as_of_the_beginning(site: Site) -> None:
    site.execute("CREATE TABLE T (a INTEGER PRIMARY KEY); INSERT INTO T VALUES (1);")
    found = site.select("SELECT a FROM T")
    assert (found.at, found.rows.height) == ("beginning", 1)


def test_a_select_from_a_query_that_has_not_begun_names_its_streams(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 2];")
    with pytest.raises(WrongUse, match="query q begins with the next tuples of S"):
        site.select("SELECT a FROM q")


def test_who_has_inserted_a_row_reads_it(site: Site) -> None:
    site.execute("CREATE TABLE T (a INTEGER PRIMARY KEY);")
    for i in range(1, 11):
        site.execute(f"INSERT INTO T VALUES ({i});")
        assert site.select("SELECT a FROM T").rows.height == i
    site.execute("DELETE FROM T;")
    assert site.select("SELECT a FROM T").rows.height == 0
