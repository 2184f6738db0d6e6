"""The canonical order of changes, and when two changelogs count as equal."""

from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.engine.changelog import (
    Change,
    change_text,
    difference,
    faults,
    in_order,
    net,
    relation_at,
    row_key,
)


def plus(ts, *row):
    return Change(ts, "+", row)


def minus(ts, *row):
    return Change(ts, "-", row)


def test_order_is_instant_then_minus_then_row_with_null_first():
    ordered = [minus(1, 2), plus(1, None), plus(1, 1), plus(1, 3), minus(2, None), minus(2, 0)]
    assert in_order(reversed(ordered)) == ordered


def test_rows_compare_column_by_column():
    rows = [(2, None), (1, "b"), (None, 9), (1, "a"), (1, None)]
    assert sorted(rows, key=row_key) == [(None, 9), (1, None), (1, "a"), (1, "b"), (2, None)]


def test_net_drops_what_stayed():
    before, after = Counter({("a",): 2, ("b",): 1}), Counter({("a",): 1, ("b",): 1, ("c",): 2})
    assert net(7, before, after) == [minus(7, "a"), plus(7, "c"), plus(7, "c")]


def test_changelog_sums_up_to_the_relation():
    changes = [plus(1, "a"), plus(1, "a"), minus(3, "a"), plus(3, "b")]
    assert relation_at(changes, 2) == Counter({("a",): 2})
    assert relation_at(changes, 3) == Counter({("a",): 1, ("b",): 1})


def test_faults_are_disorder_and_rows_with_both_signs():
    assert faults([minus(1, "a"), plus(1, "b"), plus(2, "a")]) == []
    assert "out of order" in faults([plus(2, "a"), plus(1, "a")])[0]
    assert faults([minus(1, "a"), plus(1, "a")]) == ["not netted: both + and 1 - ('a')"]


def test_equal_changelogs_do_not_differ_whatever_the_order_within_an_instant():
    changes = [minus(1, "a"), plus(1, "b"), plus(1, "b")]
    assert difference(changes, changes[::-1]) == []


def test_difference_names_what_is_missing_and_what_is_too_much():
    assert difference([plus(1, "a"), plus(1, "a")], [plus(1, "a"), minus(4, "a")]) == [
        "missing: 1 + ('a')",
        "unexpected: 4 - ('a')",
    ]


def test_doubles_match_within_the_tolerance():
    assert difference([plus(1, 1.0)], [plus(1, 1.0 + 1e-10)]) == []
    assert difference([plus(1, 1.0)], [plus(1, 1.0 + 1e-8)]) != []


def test_matching_is_robust_where_close_rows_sort_differently():
    near = 1.0 + 1e-10
    assert (
        difference([plus(1, 1.0, 2), plus(1, near, 1)], [plus(1, near, 2), plus(1, 1.0, 1)]) == []
    )


def test_closeness_is_not_transitive_so_the_matching_must_look_around():
    step = 8e-10  # within the tolerance; twice that is not
    expected = [plus(1, 1.0), plus(1, 1.0 + step)]
    assert difference(expected, [plus(1, 1.0 - step), plus(1, 1.0 + step / 2)]) == []
    assert len(difference(expected, [plus(1, 1.0 - step), plus(1, 1.0 - step)])) == 2


def test_a_sums_rounding_may_change_on_one_side_only():
    changed = [minus(5, "k", 0.3), plus(5, "k", 0.1 + 0.2)]
    assert difference(changed, []) == []
    assert difference([], changed) == []


@pytest.mark.parametrize(
    ("one", "other"), [(1, 1.0), (1, True), (0, None), (1, Decimal(1)), ("1", 1)]
)
def test_types_are_never_confused(one, other):
    assert len(difference([plus(1, one)], [plus(1, other)])) == 2


def test_change_reads_well():
    assert change_text(minus(3, 1, None, "x")) == "3 - (1, NULL, 'x')"


ROWS = st.tuples(st.one_of(st.none(), st.integers(0, 2)), st.sampled_from("ab"))


@given(st.lists(ROWS), st.lists(ROWS))
def test_net_turns_the_first_bag_into_the_second(before, after):
    changes = net(1, Counter(before), Counter(after))
    start = [Change(0, "+", row) for row in before]
    assert relation_at(start + changes, 1) == Counter(after)
    assert faults(changes) == []


CHANGES = st.builds(Change, st.integers(0, 2), st.sampled_from("+-"), ROWS)


@given(st.lists(CHANGES, max_size=8), st.lists(CHANGES, max_size=8))
def test_without_doubles_the_difference_is_exact(one, other):
    def weights(changes):
        total = Counter()
        for c in changes:
            total[c.ts, c.row] += 1 if c.op == "+" else -1
        return {key: weight for key, weight in total.items() if weight}

    assert (difference(one, other) == []) == (weights(one) == weights(other))
