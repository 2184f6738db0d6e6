"""CREATE OR REPLACE QUERY and ALTER QUERY: from an instant on another version speaks, and whoever
listens goes on listening."""

import threading
import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from tests.engine.site.conftest import OpenSite, rows, said

from thalweg.engine.shared.replacing import CannotReplace
from thalweg.engine.site import Position, Site
from thalweg.engine.site.errors import Forgotten
from thalweg.engine.site.positions import START, parse_position

S = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts;"


def step(site: Site, *stamped: tuple[int, int]) -> None:
    site.push("S", rows(*stamped))
    site.settle()


def content(site: Site, query: str) -> Counter:
    """What all changes add up to."""
    bag: Counter = Counter()
    for _, op, *row in said(site, query):
        bag[tuple(row)] += 1 if op == "+" else -1
    assert all(n >= 0 for n in bag.values())
    return +bag


def marks(site: Site, query: str) -> list[tuple[int, int, int]]:
    """(run, version, instant) of versions that have ended."""
    pages = list(site.results(query))
    return [(p.emission.run, p.mark.version, p.mark.instant) for p in pages if p.mark is not None]


def test_the_new_version_says_only_what_is_different(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")
    step(site, (1, 10), (2, 20), (3, 30), (4, 0))
    site.execute("CREATE OR REPLACE QUERY q AS SELECT a FROM S [Range 100] WHERE a > 15")
    step(site, (7, 0), (8, 40), (9, 0))
    assert said(site, "q") == [
        (1, "+", 10),
        (2, "+", 20),
        (3, "+", 30),
        (4, "-", 10),
        (8, "+", 40),
    ]
    assert marks(site, "q") == [(1, 1, 4)]


def test_between_the_versions_stands_an_end_mark_and_ids_have_the_run(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")
    step(site, (1, 10), (2, 20))
    site.execute("ALTER QUERY q AS SELECT a FROM S [Range 100] WHERE a > 15")
    step(site, (5, 50))
    step(site, (6, 60))
    seen = []
    for page in site.results("q"):
        seen += [str(i) for i in page.ids()]
        if page.mark is not None:
            seen.append(f"end of version {page.mark.version}: {page.last}")
    assert seen == ["1.1.0", "end of version 1: 1.end", "2.2.0", "2.2.1", "2.5.0"]


def test_other_columns_end_with_all_rows_taken_back(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")
    step(site, (1, 10), (2, 20), (3, 0))
    site.execute("CREATE OR REPLACE QUERY q AS SELECT COUNT(*) AS n, MAX(a) AS m FROM S [Range 99]")
    step(site, (5, 50), (6, 0))
    assert said(site, "q") == [
        (1, "+", 10),
        (2, "+", 20),
        (3, "-", 10),
        (3, "-", 20),
        (3, "+", 3, 20),
        (5, "-", 3, 20),
        (5, "+", 4, 50),
    ]
    assert marks(site, "q") == [(1, 1, 3)]
    columns = [p.emission.columns for p in site.results("q")]
    assert columns[0] == ("a",)
    assert columns[-1] == ("n", "m")


def test_an_aggregate_that_holds_more_than_is_stored_is_replaced_exactly(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT COUNT(*) AS n FROM S [Unbounded]")
    step(site, (1, 10), (2, 20), (3, 30))
    site.execute("CREATE OR REPLACE QUERY q AS SELECT SUM(1) AS n FROM S [Range 1]")
    step(site, (5, 50), (6, 1), (7, 1))
    assert content(site, "q") == Counter({(2,): 1})


def test_a_stream_goes_on_as_another_stream(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS ISTREAM SELECT a FROM S [Now]")
    step(site, (1, 10), (2, 20), (3, 30))
    site.execute("CREATE OR REPLACE QUERY q AS ISTREAM SELECT a FROM S [Now] WHERE a > 35")
    step(site, (5, 40), (6, 30), (7, 50), (8, 0))
    assert said(site, "q") == [(1, "+", 10), (2, "+", 20), (5, "+", 40), (7, "+", 50)]


def test_a_version_that_never_spoke_leaves_no_trace(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")
    step(site, (1, 10), (2, 20))
    site.execute("CREATE OR REPLACE QUERY q AS SELECT a, a AS b FROM S [Range 100]")
    site.execute("CREATE OR REPLACE QUERY q AS SELECT a FROM S [Range 100] WHERE a > 15")
    assert said(site, "q") == [(1, "+", 10)]
    step(site, (5, 50))
    assert said(site, "q") == [(1, "+", 10), (2, "-", 10), (2, "+", 20)]
    assert marks(site, "q") == [(1, 1, 2)]


def test_versions_follow_upon_each_other(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 1000]")
    step(site, (1, 10), (2, 20))
    for number, least in enumerate((15, 25, 5), start=1):
        site.execute(f"CREATE OR REPLACE QUERY q AS SELECT a FROM S [Range 1000] WHERE a > {least}")
        step(site, (10 * number, 100 * number), (10 * number + 1, 0))
    assert [v for _, v, _ in marks(site, "q")] == [1, 2, 3]
    assert content(site, "q") == Counter({(a,): 1 for a in (10, 20, 100, 200, 300)})


def test_a_member_of_a_group_is_replaced(site: Site) -> None:
    many = "".join(
        f"CREATE QUERY q{i} AS SELECT a FROM S [Range 1000] WHERE a > {i};" for i in range(70)
    )
    site.execute(S + many)
    step(site, (1, 10), (2, 20), (3, 68))
    step(site, (4, 3))
    assert site.queries()[5].group is not None
    before = said(site, "q5")
    assert before == [(1, "+", 10), (2, "+", 20), (3, "+", 68)]
    site.execute("CREATE OR REPLACE QUERY q5 AS SELECT a FROM S [Range 1000] WHERE a > 15")
    step(site, (6, 16), (7, 0))
    assert said(site, "q5") == [*before, (4, "-", 10), (6, "+", 16)]
    assert said(site, "q6") == [*before, (6, "+", 16)]


def test_a_replaced_query_joins_a_group_later(site: Site) -> None:
    many = "".join(
        f"CREATE QUERY q{i} AS SELECT a FROM S [Range 10] WHERE a > {i};" for i in range(70)
    )
    site.execute(S + many + "CREATE QUERY other AS SELECT a FROM S [Range 10] WHERE a < 0")
    step(site, (1, 10), (2, 20))
    site.execute("CREATE OR REPLACE QUERY other AS SELECT a FROM S [Range 10] WHERE a > 7")
    for ts in range(3, 60):
        step(site, (ts, ts))
    expected = [r for r in said(site, "q7") if r[0] >= 2]
    assert [r for r in said(site, "other") if r[0] > 2] == [r for r in expected if r[0] > 2]
    assert content(site, "other") == content(site, "q7")


def test_replacing_survives_a_restart_before_and_after_the_first_words(open_here: OpenSite) -> None:
    site = open_here()
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")
    step(site, (1, 10), (2, 20), (3, 0))
    site.execute("CREATE OR REPLACE QUERY q AS SELECT a FROM S [Range 100] WHERE a > 15")
    site.close()
    site = open_here()
    assert said(site, "q") == [(1, "+", 10), (2, "+", 20)]
    step(site, (5, 50))
    site.close()
    site = open_here()
    step(site, (6, 0))
    expected = [(1, "+", 10), (2, "+", 20), (3, "-", 10), (5, "+", 50)]
    assert said(site, "q") == expected
    assert marks(site, "q") == [(1, 1, 3)]
    assert [q.version for q in site.queries()] == [2]


def test_a_replacement_that_fails_leaves_the_old_version(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")
    step(site, (1, 10), (2, 20))

    def no_room(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(site.engine.store.runs, "begin", no_room)
    with pytest.raises(OSError, match="no room"):
        site.execute("CREATE OR REPLACE QUERY q AS SELECT a FROM S [Range 100] WHERE a > 15")
    monkeypatch.undo()
    step(site, (5, 50), (6, 0))
    assert said(site, "q") == [(1, "+", 10), (2, "+", 20), (5, "+", 50)]
    assert marks(site, "q") == []
    assert "WHERE" not in site.book.script()


def test_a_reader_that_follows_goes_on_through_the_end_mark(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")
    found: list[object] = []

    def read() -> None:
        for page in site.results("q", follow=True):
            found.extend((c.ts, c.op, *c.row) for c in page.changes())
            if page.mark is not None:
                found.append(page.mark.version)

    def found_so_far(count: int) -> bool:
        until = time.monotonic() + 120
        while len(found) < count and time.monotonic() < until:
            time.sleep(0.01)
        return len(found) == count

    thread = threading.Thread(target=read)
    thread.start()
    step(site, (1, 10), (2, 20))
    site.execute("CREATE OR REPLACE QUERY q AS SELECT a FROM S [Range 100] WHERE a > 15")
    step(site, (3, 0))
    assert found_so_far(4)
    site.stop("q")
    thread.join(10)
    assert not thread.is_alive()
    assert found == [(1, "+", 10), 1, (2, "-", 10), (2, "+", 20)]


def test_a_reader_comes_back_with_an_id_of_an_old_version(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")
    step(site, (1, 10), (2, 20), (3, 30))
    site.execute("CREATE OR REPLACE QUERY q AS SELECT a, 1 AS one FROM S [Range 100]")
    step(site, (5, 50))

    def behind(id_: str) -> list[str]:
        pages = site.results("q", parse_position(id_))
        return [str(i) for p in pages for i in (*p.ids(), *([p.last] if p.mark else []))]

    whole = behind("1.1.0")
    assert whole == ["1.2.0", "1.3.0", "1.3.1", "1.end", "2.3.0", "2.3.1", "2.3.2"]
    for place, id_ in enumerate(whole):
        assert behind(id_) == whole[place + 1 :]
    with pytest.raises(Forgotten):
        site.results("q", Position(9, 1, 0))


def test_sinks_stay_and_see_the_mark(open_here: OpenSite, tmp_path: Path) -> None:
    site = open_here()
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")
    for target in ("jsonl:out.jsonl", "csv:out.csv", "parquet:out"):
        site.write_to("q", target)
    step(site, (1, 10), (2, 20))
    site.execute("CREATE OR REPLACE QUERY q AS SELECT a FROM S [Range 100] WHERE a > 15")
    site.close()
    site = open_here()
    step(site, (5, 50))
    step(site, (6, 50))
    site.close()
    assert (tmp_path / "out.jsonl").read_text().splitlines() == [
        '{"query":"q","ts":1,"op":"+","row":{"a":10}}',
        '{"query":"q","ts":2,"op":"end","row":{},"version":1}',
        '{"query":"q","ts":2,"op":"-","row":{"a":10}}',
        '{"query":"q","ts":2,"op":"+","row":{"a":20}}',
        '{"query":"q","ts":5,"op":"+","row":{"a":50}}',
    ]
    assert (tmp_path / "out.csv").read_text().splitlines() == [
        "_ts,_op,a",
        "1,+,10",
        "2,end,",
        "2,-,10",
        "2,+,20",
        "5,+,50",
    ]
    written = pl.read_parquet(tmp_path / "out" / "*.parquet").sort(
        "_ts", "_op", descending=[False, True]
    )
    assert written.rows() == [(1, "+", 10), (2, "-", 10), (2, "+", 20), (5, "+", 50)]
    assert [p.name for p in (tmp_path / "out").glob("_*")] == ["_run-1-ended-2"]


def test_a_csv_sink_is_not_given_other_columns(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")
    site.write_to("q", "csv:out.csv")
    step(site, (1, 10), (2, 20))
    with pytest.raises(CannotReplace, match=r"csv:out\.csv can't take other columns"):
        site.execute("CREATE OR REPLACE QUERY q AS SELECT a, 1 AS b FROM S [Range 100]")
    site.execute("CREATE OR REPLACE QUERY q AS SELECT a FROM S [Range 99]")


def test_a_finished_query_has_no_instant_to_go_on_from(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")
    step(site, (1, 10))
    site.finish("S")
    site.settle()
    with pytest.raises(CannotReplace, match="q has finished"):
        site.execute("CREATE OR REPLACE QUERY q AS SELECT a FROM S [Range 9]")


def test_a_query_in_its_first_tick_is_replaced_as_if_it_had_not_been(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")
    site.execute("CREATE OR REPLACE QUERY q AS SELECT a FROM S [Range 100] WHERE a > 15")
    step(site, (1, 10), (2, 20), (3, 30))
    assert said(site, "q") == [(2, "+", 20)]


def test_explain_and_ps_name_the_version(site: Site) -> None:
    site.execute(S + "CREATE QUERY q AS SELECT a FROM S [Range 100]")
    step(site, (1, 10), (2, 20))
    assert "version" not in site.explain("q").text
    site.execute("CREATE OR REPLACE QUERY q AS SELECT a FROM S [Range 50]")
    step(site, (3, 10), (4, 20))
    assert site.explain("q").text.splitlines()[0] == "version 2, from instant 2 on"
    assert site.explain("q").data["version"] == 2
    assert [(q.name, q.version) for q in site.queries()] == [("q", 2)]


def test_readers_of_a_view_are_replaced_with_it_also_after_a_restart(open_here: OpenSite) -> None:
    site = open_here()
    site.execute(
        S + "CREATE VIEW V AS SELECT a FROM S [Range 100]; CREATE VIEW W AS SELECT a FROM V;"
        "CREATE QUERY q AS SELECT a FROM W; CREATE QUERY r AS SELECT a FROM S [Now]"
    )
    step(site, (1, 10), (2, 20), (3, 0))
    site.execute("CREATE OR REPLACE VIEW V AS SELECT a FROM S [Range 100] WHERE a > 15")
    step(site, (5, 50))
    site.close()
    site = open_here()
    step(site, (6, 0))
    assert said(site, "q") == [(1, "+", 10), (2, "+", 20), (3, "-", 10), (5, "+", 50)]
    assert [(q.name, q.version) for q in site.queries()] == [("r", 1), ("q", 2)]


def test_a_view_that_is_replaced_by_an_equal_one_stays_before_its_readers(
    open_here: OpenSite,
) -> None:
    site = open_here()
    site.execute(
        S + "CREATE VIEW V AS SELECT a, a AS b FROM S [Range 9]; CREATE QUERY q AS SELECT a FROM V"
    )
    site.execute("CREATE OR REPLACE VIEW V AS SELECT a, a + 1 AS b FROM S [Range 9]")
    site.close()
    site = open_here()
    step(site, (1, 10), (2, 20))
    assert said(site, "q") == [(1, "+", 10)]


@pytest.mark.parametrize("old", ["[Range 100]", "[Unbounded]", "[Rows 4]"])
@pytest.mark.parametrize("new", ["[Range 4]", "[Rows 2]", "[Range 100] WHERE a > 2"])
def test_a_version_whose_first_results_are_gone_is_replaced_all_the_same(
    open_here: OpenSite, old: str, new: str
) -> None:
    site = open_here(retained_ticks=2)
    site.execute(S + f"CREATE QUERY q AS SELECT a FROM S {old}")
    seen: Counter[int] = Counter()
    after = START
    for ts in range(1, 20):
        step(site, (ts, ts))
        if ts == 9:
            site.execute(f"CREATE OR REPLACE QUERY q AS SELECT a FROM S {new}")
        for page in site.results("q", after):  # a reader that keeps up
            for id_, change in zip(page.ids(), page.changes(), strict=True):
                after = id_
                if change.op in "+-":
                    seen[change.row[0]] += 1 if change.op == "+" else -1
        assert sorted((+seen).elements()) == [row[0] for row in site.content("q").tuples()], ts
    site.close()
    again = open_here(retained_ticks=2)
    assert sorted((+seen).elements()) == [row[0] for row in again.content("q").tuples()]
