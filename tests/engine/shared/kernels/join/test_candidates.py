"""Candidates leave out no pair that meets, and few that do not."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.frames import FOREVER
from thalweg.engine.shared.kernels.join.candidates import Candidates, Range, by_time, fewest
from thalweg.engine.shared.kernels.join.probing import steps
from thalweg.plan.expr import Call, Col
from thalweg.plan.functions import call
from thalweg.plan.types import BIGINT, BOOLEAN
from thalweg.plan.windows import NOW

INTERVALS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 6) | st.none()).map(
        lambda i: (i[0], FOREVER if i[1] is None else i[0] + i[1])
    ),
    max_size=12,
)
VALUES = st.lists(st.integers(-3, 3) | st.none(), max_size=12)


def pairs(found: list[Candidates] | None) -> list[tuple[int, int]]:
    assert found is not None
    return sorted(
        (int(a), int(b)) for c in found for i, j in c.pairs() for a, b in zip(i, j, strict=True)
    )


@given(INTERVALS, INTERVALS)
def test_by_time_all_that_overlap_are_found_once(probing, stored):
    first, last = (np.array([i[n] for i in stored], dtype=np.int64) for n in (0, 1))
    start, end = (np.array([i[n] for i in probing], dtype=np.int64) for n in (0, 1))
    found = pairs(by_time(first, last, start, end))
    assert len(found) == len(set(found))
    overlapping = {
        (i, j)
        for i, (a, b) in enumerate(probing)
        for j, (c, d) in enumerate(stored)
        if max(a, c) < min(b, d)
    }
    assert overlapping <= set(found)


@pytest.mark.parametrize("end", [FOREVER, 999])
def test_what_lasts_long_does_not_make_others_last(end):
    first = np.arange(1_000)
    last = np.where(first == 0, end, first + 1)
    found = pairs(by_time(first, last, first, first + 1))
    assert len(found) <= 1_000 + 999


def joined(*conditions: Call) -> ph.Join:
    sources = tuple(ph.Source(s, (BIGINT, BIGINT), NOW) for s in "ST")
    return ph.Join(sources, (), conditions, (Col(0, BIGINT),))


@given(
    VALUES, VALUES, st.lists(st.sampled_from(("<", "<=", ">", ">=", "=")), min_size=1, max_size=3)
)
def test_by_range_just_those_that_fulfil_the_comparisons(probing, stored, functions):
    left, right = Col(0, BIGINT), Col(2, BIGINT)
    conditions = [
        Call(f, (left, right) if i % 2 else (right, left), BOOLEAN) for i, f in enumerate(functions)
    ]
    op = joined(*conditions)
    (step,) = steps(op, 0, [1])
    rows = pl.DataFrame({"c0": pl.Series(probing, dtype=pl.Int64)})
    found = Range.of(op, step, rows)
    assert found is not None
    kept = pairs(found.candidates(pl.DataFrame({"c0": pl.Series(stored, dtype=pl.Int64)})))
    compare = {
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
        "=": lambda a, b: a == b,
    }
    assert kept == [
        (i, j)
        for i, a in enumerate(probing)
        for j, b in enumerate(stored)
        if a is not None
        and b is not None
        and all(compare[f](a, b) if n % 2 else compare[f](b, a) for n, f in enumerate(functions))
    ]


def test_a_condition_over_both_sides_at_once_bounds_nothing():
    both = call("=", call("+", Col(0, BIGINT), Col(2, BIGINT)), Col(1, BIGINT))
    op = joined(both)
    (step,) = steps(op, 0, [1])
    assert Range.of(op, step, pl.DataFrame({"c0": [1], "c1": [1]})) is None


def test_the_fewer_pairs_are_taken():
    some = np.arange(3)
    few = [Candidates.between(some, np.array([0]), np.array([1]))]
    many = [Candidates.between(some, np.array([0]), np.array([3]))]
    assert fewest(many, few) is few
