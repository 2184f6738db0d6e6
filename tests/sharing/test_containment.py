"""Containment against the reference: no claim has a counter-example, no denial lacks a witness."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sharing.decidable import (
    DECIDABLE,
    INSTANTS,
    VALUES,
    auctions,
    decidable_queries,
    normal,
)
from tests.sharing.drawing import SHAPES, Drawer, core_text, plan_of, query_text, streams
from tests.sharing.witnesses import candidates, is_part_on

from thalweg.cql import compile_script
from thalweg.engine.arrivals import Arrival
from thalweg.sharing.containment import contains, equivalent
from thalweg.sharing.core import Grouped, NormalQuery

# --- soundness ------------------------------------------------------------------------------------


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Two queries that are much alike; the second is often the first with more conditions."""
    drawer = Drawer(draw, draw(st.sampled_from(SHAPES)))
    what = drawer.pick(("rows", "distinct", "groups", "groups", "stream"))
    joins = drawer.joins()
    outputs, where = drawer.outputs(), [*joins, *drawer.conditions(drawer.pick((0, 1)))]
    sources = drawer.sources()
    if what == "stream":
        sources = [re.sub(r"\[.*\]", "", s) for s in sources]  # unbounded
    others = drawer.sources() if drawer.pick((1, 2, 3)) == 3 else sources
    key = f"{outputs[0]} IS NOT NULL"
    added = drawer.pick(([], [key], drawer.conditions(1), drawer.conditions(1)))
    outer = query_text(outputs, sources, where)
    inner = query_text(outputs, others, [*where, *added])
    if drawer.pick((1, 2, 3, 4)) == 4:
        inner = core_text(drawer, joins)
    match what:
        case "distinct":
            return outer, inner.replace("SELECT", "SELECT DISTINCT", 1)
        case "groups":
            having = ["", "", *(f" HAVING {c}" for c in ("COUNT(*) > 1", "COUNT(*) >= 1"))]
            group = "SELECT c0, COUNT(*) AS n FROM ({}) q GROUP BY c0{}"
            return group.format(outer, drawer.pick(having)), group.format(
                inner, drawer.pick(having)
            )
        case "stream":
            kind = drawer.pick(("ISTREAM", "ISTREAM", "DSTREAM"))
            return f"{kind} ({outer})", f"{kind} ({inner})"
        case _:
            return outer, inner


def test_what_is_said_to_be_contained_is_so_on_every_stream() -> None:
    answers: Counter[tuple[str, bool]] = Counter()

    @settings(max_examples=150)
    @given(pairs(), st.lists(streams(most=4), min_size=2, max_size=2))
    def check(texts: tuple[str, str], inputs: list[dict[str, list[Arrival]]]) -> None:
        plans = [plan_of(t) for t in texts]
        outer, inner = map(normal, plans)
        for one, other, big, small in (
            (outer, inner, *plans),
            (inner, outer, *reversed(plans)),
        ):
            answer = contains(one, other)
            answers[_what(other), bool(answer)] += 1
            assert bool(answer) != bool(answer.reason)
            if answer:
                assert all(is_part_on(i, small, big) for i in inputs)
            if equivalent(one, other):
                assert all(is_part_on(i, big, small) for i in inputs)

    check()
    for what in ("rows", "distinct", "groups", "stream"):
        assert answers[what, True] >= 10, answers
    assert sum(n for (_, holds), n in answers.items() if not holds) >= 50


def _what(query: NormalQuery) -> str:
    if query.kind is not None:
        return "stream"
    if not query.above:
        return "rows"
    return "groups" if isinstance(query.above[0], Grouped) else "distinct"


# --- completeness where the question is decidable ------------------------------------------------


@st.composite
def decidable_pairs(draw: st.DrawFn) -> tuple[str, str]:
    sources = draw(st.sampled_from((("O",), ("O", "C"))))
    outer = draw(decidable_queries(sources))
    inner = draw(decidable_queries(sources))
    if draw(st.booleans()):  # the same outputs, or nothing is ever contained
        inner = outer.split(" FROM")[0] + " FROM" + inner.split(" FROM")[1]
    return outer, inner


def test_where_it_is_decidable_what_is_not_contained_has_a_witness() -> None:
    answers: Counter[bool] = Counter()

    @settings(max_examples=120)
    @given(decidable_pairs())
    def check(texts: tuple[str, str]) -> None:
        plans = [compile_script(f"{t};", DECIDABLE).queries[0].plan for t in texts]
        outer, inner = map(normal, plans)
        found = (
            inputs
            for inputs in candidates(outer.core, inner.core, VALUES, INSTANTS)
            if not is_part_on(inputs, plans[1], plans[0])
        )
        witness = next(found, None)
        answer = contains(outer, inner)
        answers[bool(answer)] += 1
        assert bool(answer) == (witness is None), answer.reason

    check()
    assert min(answers[True], answers[False]) >= 20, answers


# --- the source's own queries, and reasons -------------------------------------------------------


def test_auctions_closed_within_five_hours_contain_those_closed_within_three() -> None:
    """COSMOS, table 3.1: Q3 against Q5, on Q3's columns."""
    three, five = auctions("O.*", 3), auctions("O.*", 5)
    assert contains(five, three)
    answer = contains(three, five)
    assert not answer
    assert answer.reason == "OpenAuction [Range 5 hours] is longer than OpenAuction [Range 3 hours]"
    assert not equivalent(three, five)


def test_a_difference_of_timestamps_can_say_what_a_window_says() -> None:
    within = "AND C.timestamp - O.timestamp <= INTERVAL '3' HOUR"
    filtered, three = auctions("O.*", 5, within), auctions("O.*", 3)
    assert contains(three, filtered)
    # Within a second of resolution an auction may be a little older than its window.
    assert not contains(filtered, three)
    rough = "AND C.timestamp - O.timestamp < INTERVAL '10801' SECOND"
    assert contains(auctions("O.*", 5, rough), three)


def text_pair(outer: str, inner: str) -> tuple[NormalQuery, NormalQuery]:
    return normal(plan_of(outer)), normal(plan_of(inner))


GROUPS = "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM A [Range {}] {} GROUP BY k {}"


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ("SELECT k FROM A [Range 3]", "SELECT k FROM A [Range 2] WHERE v > 3 AND t LIKE 'a%'"),
        ("SELECT k FROM A WHERE v <> 3", "SELECT k FROM A WHERE v > 3"),
        ("SELECT k FROM A WHERE v IN (1, 2, 3)", "SELECT k FROM A WHERE v IN (1, 3)"),
        ("SELECT k FROM A WHERE v IN (1, 2, 3)", "SELECT k FROM A WHERE v = 2"),
        ("SELECT k FROM A WHERE v > 1 OR t = 'a'", "SELECT k FROM A WHERE v > 2"),
        ("SELECT k FROM A WHERE v IS NOT NULL", "SELECT k FROM A WHERE v + k > 2"),
        ("SELECT k FROM A WHERE k < v", "SELECT k FROM A WHERE k <= 2 AND v >= 3"),
        ("SELECT k FROM A WHERE k <= v", "SELECT k FROM A WHERE v > k"),
        ("SELECT k FROM A WHERE v = 1", "SELECT k FROM A WHERE v > 3 AND v < 2"),
        ("SELECT 3 AS k FROM A", "SELECT k FROM A WHERE k = 3"),
        ("SELECT v FROM A", "SELECT k FROM A WHERE v = k"),
        ("SELECT k FROM A", "SELECT DISTINCT k FROM A WHERE v > 3"),
        ("SELECT DISTINCT k FROM A", "SELECT DISTINCT k FROM A WHERE v > 3"),
        (
            "SELECT a.k FROM A [Range 5] a, A [Range 2] b WHERE a.k = b.v",
            "SELECT b.k FROM A [Range 1] a, A [Range 4] b WHERE a.v = b.k AND a.x > 1e0",
        ),
        (  # only with the leaves exchanged
            "SELECT a.k FROM A [Range 2] a, A [Range 5] b WHERE a.k = b.k AND a.v > 0",
            "SELECT b.k FROM A [Range 1] a, A [Range 2] b WHERE a.k = b.k AND b.v > 0",
        ),
        (GROUPS.format(3, "", ""), GROUPS.format(3, "WHERE k > 3", "")),
        (GROUPS.format(3, "", "HAVING COUNT(*) > 1"), GROUPS.format(3, "", "HAVING COUNT(*) > 2")),
        ("ISTREAM (SELECT k FROM A)", "ISTREAM (SELECT k FROM A WHERE v > 3)"),
    ],
)
def test_contained(outer: str, inner: str) -> None:
    big, small = text_pair(outer, inner)
    assert contains(big, small)
    assert not equivalent(big, small) or contains(small, big)


@pytest.mark.parametrize(
    ("outer", "inner", "reason"),
    [
        (
            "SELECT k FROM A [Now]",
            "SELECT k FROM A [Range 1]",
            "A [Range 1] is longer than A [Now]",
        ),
        (
            "SELECT k FROM A WHERE v > 3",
            "SELECT k FROM A WHERE v > 2",
            "v in [3, ∞) reaches beyond",
        ),
        ("SELECT k FROM A WHERE v > 3", "SELECT k FROM A", "nothing keeps v in [4, ∞)"),
        ("SELECT k FROM A WHERE t LIKE 'a%'", "SELECT k FROM A", "nothing says that t LIKE 'a%'"),
        ("SELECT k FROM A", "SELECT v FROM A", "column 1 is v in one, k in the other"),
        ("SELECT k FROM A", "SELECT k, v FROM A", "one has 2 columns, the other 1"),
        ("SELECT k FROM A", "SELECT k FROM B", "one reads B, the other A"),
        ("SELECT DISTINCT k FROM A", "SELECT k FROM A", "drops them (DISTINCT)"),
        (
            "SELECT k FROM A",
            "ISTREAM (SELECT k FROM A)",
            "one is its ISTREAM, the other",
        ),
        (
            "ISTREAM (SELECT k FROM A [Range 3])",
            "ISTREAM (SELECT k FROM A [Range 2])",
            "what enters or leaves a part need not show",
        ),
        (
            "SELECT a.k FROM A a, B b WHERE a.k = b.k",
            "SELECT a.k FROM A a, B b",
            "nothing says that A.k = B.k",
        ),
        (
            GROUPS.format(3, "", ""),
            GROUPS.format(3, "WHERE v > 3", ""),
            "the same groups have other rows: nothing keeps v in [4, ∞)",
        ),
        (
            GROUPS.format(3, "", ""),
            GROUPS.format(2, "", ""),
            "the same groups have other rows: A [Range 3] is longer than A [Range 2]",
        ),
        (
            "SELECT k, COUNT(*) AS n FROM (SELECT DISTINCT k, v FROM A) q GROUP BY k",
            "SELECT k, COUNT(*) AS n FROM (SELECT DISTINCT k, v FROM A WHERE v > 3) q GROUP BY k",
            "nothing keeps v in [4, ∞)",
        ),
        (
            GROUPS.format(3, "", "HAVING COUNT(*) > 2"),
            GROUPS.format(3, "", "HAVING COUNT(*) > 1"),
            "count 1 in [2, ∞) reaches beyond [3, ∞)",
        ),
        (
            GROUPS.format(3, "", ""),
            "SELECT v, COUNT(*) AS n, SUM(k) AS s FROM A [Range 3] GROUP BY v",
            "different keys",
        ),
    ],
)
def test_not_contained_and_why(outer: str, inner: str, reason: str) -> None:
    answer = contains(*text_pair(outer, inner))
    assert not answer
    assert reason in answer.reason


def test_equivalent_though_the_normal_forms_differ() -> None:
    one, other = text_pair(
        "SELECT k FROM A WHERE v = 2 AND k = 2", "SELECT v FROM A WHERE v = k AND k = 2"
    )
    assert one.core != other.core
    assert equivalent(one, other)
