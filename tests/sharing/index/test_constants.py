"""Who matches a row: the index says what looking at every member by itself would say."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.plan.expr import Col, Expr
from thalweg.plan.types import INTEGER
from thalweg.sharing.index import constants as constants_module
from thalweg.sharing.index.constants import Constants, Manner, manner_of
from thalweg.sharing.index.stabbing import Between
from thalweg.sharing.ranges import Bound, Range

A, B = Col(0, INTEGER), Col(1, INTEGER)
VALUES = st.integers(-5, 5)


def inside(value: Any, range_: Range) -> bool:
    if value is None:
        return False
    if range_.low is not None and not (
        value > range_.low.value or (range_.low.closed and value == range_.low.value)
    ):
        return False
    return range_.high is None or bool(
        value < range_.high.value or (range_.high.closed and value == range_.high.value)
    )


@st.composite
def ranges_of(draw: st.DrawFn, manner: Manner, values: st.SearchStrategy[Any]) -> Range:
    low = Bound(draw(values), draw(st.booleans()))
    high = Bound(draw(values), draw(st.booleans()))
    match manner:
        case Manner.EQUAL:
            return Range(Bound(low.value, True), Bound(low.value, True))
        case Manner.FLOOR:
            return Range(low, None)
        case Manner.CEILING:
            return Range(None, high)
        case Manner.BETWEEN:
            return Range(low, high)


@st.composite
def families(draw: st.DrawFn) -> list[dict[Expr, Range]]:
    manners = {e: draw(st.sampled_from(Manner)) for e in draw(st.sampled_from([(), (A,), (A, B)]))}
    member = st.fixed_dictionaries({e: ranges_of(m, VALUES) for e, m in manners.items()})
    return draw(st.lists(member, min_size=1, max_size=12))


def pairs(family: Constants, values: dict[Expr, pl.Series], height: int) -> list[tuple[int, int]]:
    codes = family.coded(values)
    found = [
        (int(r), int(m))
        for rows, members in family.match(codes, height)
        for r, m in zip(rows, members, strict=True)
    ]
    assert {r for r, _ in found} <= set(family.candidates(codes, height).tolist())
    return sorted(found)


@given(families(), st.lists(st.tuples(st.none() | VALUES, st.none() | VALUES), max_size=12))
@settings(max_examples=400, deadline=None)
def test_a_row_finds_the_members_whose_ranges_hold_its_values(
    members: list[dict[Expr, Range]], rows: list[tuple[int | None, int | None]]
) -> None:
    family = Constants.of(members, {A: pl.Int32(), B: pl.Int32()})
    values = {e: pl.Series([r[i] for r in rows], dtype=pl.Int32) for i, e in enumerate((A, B))}
    expected = [
        (i, m)
        for i, row in enumerate(rows)
        for m, wanted in enumerate(members)
        if all(inside(row[e.index], r) for e, r in wanted.items())  # type: ignore[union-attr]
    ]
    assert pairs(family, values, len(rows)) == expected


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (pl.String(), ["", "a", "ab", "b", "é", "z"]),
        (pl.Decimal(38, 2), [Decimal(n).scaleb(-2) for n in (-150, 0, 1, 99, 150)]),
        (pl.Datetime("us"), [datetime(2025, 1, d) for d in (1, 2, 3, 9)]),
        (pl.Float64(), [-1.5, 0.0, 0.1, 2.5e300]),
    ],
)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_values_of_every_type_are_compared_by_their_own_order(
    dtype: pl.DataType, values: list[Any], data: st.DataObject
) -> None:
    one = st.sampled_from(values)
    manner = data.draw(st.sampled_from(Manner))
    members = [{A: r} for r in data.draw(st.lists(ranges_of(manner, one), min_size=1, max_size=6))]
    rows = data.draw(st.lists(st.none() | one, max_size=8))
    family = Constants.of(members, {A: dtype})
    expected = [
        (i, m) for i, v in enumerate(rows) for m, r in enumerate(members) if inside(v, r[A])
    ]
    assert pairs(family, {A: pl.Series(rows, dtype=dtype)}, len(rows)) == expected


def test_wide_bins_only_find_candidates_that_are_checked() -> None:
    ranges = [Range(Bound(i, True), Bound(i + 40, True)) for i in range(100)]
    column = constants_module._column(A, ranges, pl.Int32())
    index = Between.of(column.low, column.high, column.codes.count, entries=50)
    assert index.width > 1
    values = pl.Series([0, 39, 139, 200], dtype=pl.Int32)
    rows, members = index.pairs(column.codes.of(values))
    expected = [(i, m) for i, v in enumerate(values) for m, r in enumerate(ranges) if inside(v, r)]
    assert sorted(zip(rows.tolist(), members.tolist(), strict=True)) == expected


def test_many_pairs_come_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants_module, "PAIRS_AT_ONCE", 10)
    members = [{A: Range(Bound(0, True), None)}] * 7
    family = Constants.of(members, {A: pl.Int32()})
    portions = list(family.match(family.coded({A: pl.Series([1] * 9, dtype=pl.Int32)}), 9))
    assert len(portions) > 3
    assert sum(len(rows) for rows, _ in portions) == 63


def test_an_equality_is_looked_up_before_a_range() -> None:
    point, floor = Range(Bound(1, True), Bound(1, True)), Range(Bound(0, False), None)
    family = Constants.of([{A: floor, B: point}], {A: pl.Int32(), B: pl.Int32()})
    assert [c.expr for c in family.looked_up] == [B]
    assert manner_of(floor) is Manner.FLOOR


def test_rows_that_nobody_wants_are_no_candidates() -> None:
    ranges = [Range(Bound(10, True), Bound(19, True)), Range(Bound(50, True), Bound(59, True))]
    family = Constants.of([{A: r} for r in ranges], {A: pl.Int32()})
    values = pl.Series([0, 10, 30, None, 59, 60], dtype=pl.Int32)
    assert family.candidates(family.coded({A: values}), 6).tolist() == [1, 4]
