import re

import polars as pl
import pytest
from tests.engine.site.conftest import rows, said

from thalweg.engine.site import Site, Unknown, WrongUse

SCRIPT = """
CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; CREATE STREAM T (a INTEGER, b VARCHAR) TIMESTAMP BY ts;
CREATE QUERY one AS SELECT a FROM S [Range 5] WHERE a = 1;
CREATE QUERY two AS SELECT a FROM S [Range 9] WHERE a = 2;
CREATE QUERY few AS SELECT ISTREAM a AS few FROM S [Range 9] WHERE a < 2;
CREATE QUERY total AS SELECT COUNT(*) AS n FROM S [Range 5];
CREATE QUERY pair AS SELECT b FROM S [Range 5], T [Now] WHERE S.a = T.a
"""


@pytest.fixture
def shared(site: Site) -> Site:
    site.execute(SCRIPT)
    site.push("S", rows((1, 1), (2, 2), (3, 3)))
    site.settle()
    return site


def without_numbers(text: str) -> str:
    return re.sub(r"\d[\d.e-]*", "#", text)


def test_a_group_is_shown_with_representative_members_profiles_windows_and_indexes(
    shared: Site,
) -> None:
    text = shared.explain_groups().text
    head, families = text.split("├─", 1)
    assert head.splitlines()[:4] == [
        "group/1 answers 3 queries",
        "│  SELECT a",
        "│  FROM S [Range 9]",
        "│  WHERE a <= 2",
    ]
    assert "windows: S [Range 5]; S [Range 9]" in head
    assert "│  estimated: # rows/s in place of #, of # tuples/s in place of #" in without_numbers(
        head
    )
    assert "measured" not in head
    assert families.splitlines() == [
        " 2 queries: found by a (equality)",
        "│  ├─ one",
        "│  │     SELECT a",
        "│  │     VALID AS S [Range 5]",
        "│  │     WHERE a = 1",
        "│  └─ two",
        "│        SELECT a",
        "│        WHERE a = 2",
        "└─ 1 query: found by a (at most)",
        "   └─ few",
        "         SELECT a",
        "         WHERE a <= 1",
    ]


def test_json_has_the_same_and_all_families(shared: Site) -> None:
    (group,) = shared.explain_groups().data
    assert (group["name"], group["members"], group["windows"]) == ("group/1", 3, 2)
    assert [f["members"] for f in group["families"]] == [2, 1]
    assert group["families"][0]["looked_up"] == ["a (equality)"]
    assert group["measured"] is None
    assert group["estimated"]["shared_tuples_per_s"] < group["estimated"]["alone_tuples_per_s"]
    assert shared.explain_group("1").data["name"] == "group/1"
    assert shared.explain("one", "shared").data["group"]["name"] == "group/1"


def test_what_a_query_cost_by_itself_measures_what_its_group_saves(shared: Site) -> None:
    shared.execute("CREATE QUERY late AS SELECT a FROM S [Range 9] WHERE a = 2 AND a + a > 3")
    for ts in range(4, 8):  # it runs by itself until it has come to the others' instant
        shared.push("S", rows((ts, 2)))
        shared.settle()
    found = shared.explain("late", "shared")
    assert found.data["group"]["measured"]["queries"] == 1
    assert " of the time; a tuple costs " in found.text
    assert "4 × " in found.text


def test_a_query_by_itself_has_a_reason(shared: Site) -> None:
    assert shared.explain("total", "shared").text == (
        "total runs by itself: "
        "no query with the same DISTINCT, GROUP BY or HAVING began together with it"
    )
    assert "no other is like it so far" in shared.explain("pair", "shared").text
    shared.execute("CREATE QUERY rowed AS SELECT a FROM S [Rows 2]")
    assert "a window of rows" in shared.explain("rowed", "shared").data["reason"]


def test_why_tells_the_form_and_then_what_is_the_case(shared: Site) -> None:
    text = shared.explain_why("ONE", "two").text.splitlines()
    assert text[0] == "They are in one group, computed once: both read S."
    assert text[-1] == "Now: both are answered by group/1, of 3 queries."
    found = shared.explain_why("one", "pair")
    assert found.data["groups"] == ["group/1", None]
    assert found.text.splitlines()[-1].startswith(
        "Now: one is answered by group/1, of 3 queries; pair runs by itself (no other is like it"
    )


def test_the_physical_plan_of_a_member_stands_above_its_group(shared: Site) -> None:
    text = shared.explain("one", "physical").text
    assert text.startswith("Output changelog of one\n│  made of its group's rows")
    assert "│  VALID AS S [Range 5]\n│  WHERE a = 1\n└─ Rows of group/1, computed once" in text
    assert "Stream S [Range 9] where a <= 2" in text
    assert shared.explain("few", "physical").text.startswith("Output ISTREAM of few")
    assert "writes the rows of the query's group" in shared.explain("one", "spark").text


def test_the_physical_plan_of_a_joining_member_names_its_columns(shared: Site) -> None:
    shared.execute("CREATE QUERY pair2 AS SELECT b FROM S [Range 7], T [Now] WHERE S.a = T.a")
    for ts in range(4, 9):
        shared.push("S", rows((ts, 2)))
        shared.push("T", pl.DataFrame({"ts": [ts], "a": [2], "b": ["x"]}))
        shared.settle()
    assert shared.engine.roster.group_of["pair2"] == shared.engine.roster.group_of["pair"]
    text = shared.explain("pair2", "physical").text
    assert "Join on S.a = T.a" in text
    assert "gives b, instant of S, instant of T" in text


def test_aggregates_that_run_together_are_shown_with_what_stands_above(site: Site) -> None:
    site.execute(
        "CREATE STREAM T (a INTEGER, b VARCHAR) TIMESTAMP BY ts;"
        "CREATE QUERY few AS SELECT b, COUNT(*) AS n FROM T [Range 5] WHERE a < 3 GROUP BY b;"
        "CREATE QUERY more AS SELECT b, COUNT(*) AS n FROM T [Range 9] WHERE a < 7 GROUP BY b"
    )
    site.push("T", pl.DataFrame({"ts": [1, 2, 3], "a": [1, 5, 9], "b": ["x", "y", "z"]}))
    site.settle()
    text = site.explain("few", "shared").text
    assert text.startswith("group/1 answers 2 queries\n│  SELECT a, b\n│  FROM T [Range 9]")
    assert "│  then for each member, all at once:\n│    GROUP BY b: COUNT(*)" in text
    assert "└─ 2 queries: found by a (at most)" in text
    physical = site.explain("few", "physical").text
    assert "Rows by member: once for each whose profile they meet" in physical
    assert "Aggregate COUNT(*) by member, output 1" in physical
    assert "aggregate" in site.explain("few", "spark").text
    site.stop("more")
    assert site.status.group("1").families[0].members == 1


def test_what_is_not_there_is_said(shared: Site) -> None:
    with pytest.raises(Unknown, match="there is no group 9"):
        shared.explain_group("9")
    with pytest.raises(Unknown, match="there is no query three"):
        shared.explain_why("one", "three")
    with pytest.raises(WrongUse, match="submit it first"):
        shared.explain("SELECT a FROM S [Now]", "shared")


def test_a_site_without_groups_says_so(site: Site) -> None:
    assert site.explain_groups().text == "no groups: every query runs by itself"
    assert site.explain_groups().data == []


# --- members in the list of queries


def test_members_share_their_groups_cost_and_rows_are_counted_where_somebody_listens(
    shared: Site,
) -> None:
    found = {q.name: q for q in shared.queries()}
    assert {q.group for n, q in found.items() if n in ("one", "two", "few")} == {"group/1"}
    assert found["total"].group is None
    group = shared.status.group("1")
    assert found["one"].cost_s == found["few"].cost_s == pytest.approx(group.cost_s / 3)
    assert group.cost_s > 0
    assert [found[n].rows for n in ("one", "two", "few")] == [None] * 3
    assert found["total"].rows == 3
    assert said(shared, "one") == [(1, "+", 1)]  # readers get them all the same
    shared.write_to("one", "jsonl:one.jsonl")
    shared.push("S", rows((9, 1)))
    shared.settle()
    assert {q.name: q for q in shared.queries()}["one"].rows == 1  # its minus


def test_why_names_what_is_shared_below_groups(site: Site) -> None:
    window = "S [Range {} Slide 10]"
    site.execute(
        "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; CREATE STREAM T (a INTEGER) TIMESTAMP BY ts;"
        f"CREATE QUERY short AS SELECT a, COUNT(*) AS n FROM {window.format(20)} GROUP BY a;"
        f"CREATE QUERY long AS SELECT a, COUNT(*) AS n FROM {window.format(90)} GROUP BY a;"
        f"CREATE QUERY met AS SELECT S.a FROM {window.format(20)}, T [Now] WHERE S.a = T.a;"
        "CREATE STREAM U (a INTEGER) TIMESTAMP BY ts;"
        f"CREATE QUERY seen AS SELECT -T.a AS b FROM {window.format(20)}, T [Now], U [Now] "
        "WHERE S.a = T.a AND T.a = U.a;"
    )
    panes = site.explain_why("short", "long").text
    assert (
        "Their partial aggregates are the same: what a pane adds to a group is kept once." in panes
    )
    assert (
        "Their joins begin alike: that part is probed once" in site.explain_why("met", "seen").text
    )
    assert "alike" not in site.explain_why("short", "met").text
    physical = site.explain("short", "physical").text
    assert "Window [Range 20 Slide 10] over whole panes" in physical
    assert "Partial aggregates by a for every 10" in physical
    assert "shared with long" in physical
