"""What windows and conditions leave of timestamps, against all small combinations."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from tests.sharing.decidable import DECIDABLE, auctions, decidable_queries, normal
from tests.sharing.interval_rows import valid

from thalweg.cql import compile_script
from thalweg.engine.reference.expressions import holds
from thalweg.plan.expr import Call, Col, Expr
from thalweg.plan.types import BIGINT
from thalweg.sharing.core import Core
from thalweg.sharing.differences import differences
from thalweg.sharing.plans import conditions_of
from thalweg.sharing.timestamps import timestamp_difference

OPEN, CLOSED = Col(3, BIGINT), Col(0, BIGINT)


def core(text: str) -> Core:
    return normal(compile_script(f"{text};", DECIDABLE).queries[0].plan).core


def speaks_of_time(condition: Expr) -> bool:
    match condition:
        case Call(_, (left, _), _):
            return left in (OPEN, CLOSED) or timestamp_difference(left) is not None
        case _:
            return False


@settings(max_examples=60)
@given(decidable_queries(("O", "C")))
def test_bounds_hold_for_all_timestamps_and_are_reached_by_some(text: str) -> None:
    found = core(text)
    conditions = [c for c in conditions_of(found) if speaks_of_time(c)]
    possible = []  # (timestamps, last instant of the row)
    for closed, opened in product(range(-1, 9), repeat=2):
        start, end = valid(found.windows, (closed, opened))
        row = (closed, None, None, opened, None, None)
        if start < end and all(holds(c, row) for c in conditions):
            possible.append((closed, opened, end - 1))
    bounds = differences(found)
    assert (bounds is not None) == bool(possible)
    if bounds is None:
        return
    between = bounds.range_of(Call("-", (OPEN, CLOSED), BIGINT))
    if between is not None and between.low is not None and between.high is not None:
        seen = [opened - closed for closed, opened, _ in possible]
        assert (between.low.value, between.high.value) == (min(seen), max(seen))
    for leaf in (0, 1):
        ages = [last - stamps[leaf] for *stamps, last in possible]
        if bounds.age(leaf) != float("inf"):
            assert bounds.age(leaf) == max(ages)


def test_a_window_bounds_the_difference_as_lemma_3_1_says() -> None:
    bounds = differences(core("SELECT O.k FROM O [Range 3], C [Range 2] WHERE O.k = C.k"))
    assert bounds is not None
    between = bounds.range_of(Call("-", (OPEN, CLOSED), BIGINT))
    assert str(between) == "[-3, 2]"


@pytest.mark.parametrize(
    ("order", "between"),
    [("<", "[-3, -1]"), ("<=", "[-3, 0]"), ("=", "= 0"), (">=", "[0, 2]"), (">", "[1, 2]")],
)
def test_an_order_of_timestamps_bounds_their_difference(order: str, between: str) -> None:
    bounds = differences(core(f"SELECT O.k FROM O [Range 3], C [Range 2] WHERE O.ts {order} C.ts"))
    assert bounds is not None
    assert str(bounds.range_of(Call("-", (OPEN, CLOSED), BIGINT))) == between


def test_without_bounds_on_both_sides_a_difference_of_whole_numbers_may_overflow() -> None:
    bounds = differences(core("SELECT O.k FROM O [Range 3], C [Unbounded]"))
    assert bounds is not None
    assert bounds.range_of(Call("-", (OPEN, CLOSED), BIGINT)) is None


def test_an_impossible_difference_is_found() -> None:
    assert differences(core("SELECT O.k FROM O [Now], C [Now] WHERE O.ts - C.ts = 1")) is None


@pytest.mark.parametrize(("hours", "oldest"), [(2, 2 * 3600), (5, 3 * 3600)])
def test_instants_are_timestamps_rounded_down_to_the_resolution(hours: int, oldest: int) -> None:
    query = auctions("O.*", hours, "AND C.timestamp - O.timestamp <= INTERVAL '3' HOUR")
    bounds = differences(query.core)
    assert bounds is not None
    assert bounds.age(1) == oldest
