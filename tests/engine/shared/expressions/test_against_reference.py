"""Every expression, with a constant or a column in each place, over no, one and many rows.

What the engine computes by columns is, to the bit, what the reference computes row by row: the same
row has the same value alone, among others, and repeated (as a join repeats it).
"""

import math
import random
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.conformance.generators.calls import EDGES, FORMS, Shape, shapes

from thalweg.engine.reference.expressions import evaluate
from thalweg.engine.shared.expressions.translate import holds, to_polars
from thalweg.engine.shared.frames import dtype
from thalweg.plan.expr import Col, Expr, Lit
from thalweg.plan.functions import call, case, cast
from thalweg.plan.types import BIGINT, BOOLEAN, DOUBLE, VARCHAR, SqlType

MOST_ROWS, CONSTANTS = 150, 3  # of a shape: so many rows, and so many constants in a place


def frame_of(types: tuple[SqlType, ...], rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(
        [pl.Series(f"c{i}", [r[i] for r in rows], dtype=dtype(t)) for i, t in enumerate(types)]
    )


def identical(a: Any, b: Any) -> bool:
    """Also in their type, a DECIMAL's places and the sign of zero."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    return a == b and (not isinstance(a, Decimal) or a.as_tuple() == b.as_tuple())


def check(expr: Expr, frame: pl.DataFrame, rows: list[tuple[Any, ...]]) -> None:
    found = frame.with_columns(to_polars(expr).cast(dtype(expr.type)).alias("_"))["_"].to_list()
    wanted = [evaluate(expr, row) for row in rows]
    assert len(found) == len(wanted), expr
    for row, a, b in zip(rows, found, wanted, strict=True):
        assert identical(a, b), f"{expr} of {row} is {a!r}, not {b!r}"
    if expr.type == BOOLEAN:
        assert holds(frame, expr).to_list() == [w is True for w in wanted], expr


def operands(shape: Shape, draw: random.Random) -> list[list[Expr]]:
    """A column or a constant in each place."""
    return [
        [
            Lit(draw.choice(EDGES[t]), t) if is_constant else Col(i, t)
            for i, (is_constant, t) in enumerate(zip(constant, shape.types, strict=True))
        ]
        for constant in product((False, True), repeat=len(shape.types))
        for _ in range(CONSTANTS if any(constant) else 1)
    ]


@pytest.mark.parametrize("form", FORMS)
def test_an_expression_has_one_value_wherever_its_row_stands(form):
    draw = random.Random(form)
    for shape in shapes(form):
        rows = list(product(*(EDGES[t] for t in shape.types)))
        if len(rows) > MOST_ROWS:
            rows = draw.sample(rows, MOST_ROWS)
        many = frame_of(shape.types, rows)
        for places in operands(shape, draw):
            expr = shape.build(places)
            check(expr, many, rows)
            row = draw.choice(rows)
            one = frame_of(shape.types, [row])
            check(expr, one, [row])
            check(expr, one[np.zeros(3, dtype=np.int64)], [row] * 3)
            check(expr, one.clear(), [])
            check(expr, one[np.zeros(3, dtype=np.int64)].clear(), [])


def test_every_form_has_shapes():
    assert [form for form in FORMS if not any(True for _ in shapes(form))] == []


@pytest.mark.parametrize("height", [0, 1, 4])
def test_a_constant_column_of_a_view_is_compared_as_any_other(height):
    """A column that a projection has made from a constant repeats one value, too."""
    rows = [(5, i) for i in range(height)]
    frame = frame_of((BIGINT, BIGINT), rows).select(pl.lit(5, dtype=pl.Int64).alias("c0"), "c1")
    five, other = Col(0, BIGINT), Col(1, BIGINT)
    for op in ("=", "<>", "<", "<=", ">", ">="):
        for left, right in product((five, other, Lit(5, BIGINT), Lit(None, BIGINT)), repeat=2):
            condition = call(op, left, right)
            check(condition, frame, rows)
            check(case([(condition, five)], other), frame, rows)
            check(call("and", condition, call("<", Lit(1, BIGINT), other)), frame, rows)


@pytest.mark.parametrize(
    ("function", "type_"),
    [("/", BIGINT), ("%", BIGINT), ("+", DOUBLE), ("/", DOUBLE), ("nullif", BIGINT)]
    + [("greatest", BIGINT), ("abs", BIGINT), ("sign", BIGINT), ("substring", VARCHAR)],
)
def test_a_long_chain_costs_what_its_links_cost(function, type_):
    """An argument that is looked at twice is not computed twice, with all that is below it."""
    expr: Expr = Col(0, type_)
    for _ in range(40):
        more = {"abs": (), "sign": (), "substring": (Lit(1, BIGINT), Lit(9, BIGINT))}
        expr = call(function, expr, *more.get(function, (Col(0, type_),)))
    rows = [(v,) for v in EDGES[type_]]
    check(expr, frame_of((type_,), rows), rows)


def test_an_extreme_of_many_values():
    many = [Col(i % 3, BIGINT) for i in range(40)]
    rows = [(1, 2, 3), (3, -1, None), (2**63 - 1, -(2**63), 0)]
    for function in ("greatest", "least"):
        check(call(function, *many), frame_of((BIGINT,) * 3, rows), rows)


def test_a_text_of_many_digits_is_no_number():
    rows = [("9" * 5_000,), ("0" * 5_000 + "7",)]
    for target in (BIGINT, DOUBLE):
        check(cast(Col(0, VARCHAR), target), frame_of((VARCHAR,), rows), rows)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [("a" * 50_000, "_" * 50_000), ("a" * 5_000, "%a_" * 20 + "b"), ("\\", "\\"), ("a\nb", "a%b")],
)
def test_a_long_or_hostile_pattern_is_matched_at_once(text, pattern):
    frame = frame_of((VARCHAR, VARCHAR), [(text, pattern)] * 2)
    expected = not pattern.endswith("b") or text.endswith("b")
    for like in (Col(1, VARCHAR), Lit(pattern, VARCHAR)):
        found = frame.select(to_polars(call("like", Col(0, VARCHAR), like))).to_series()
        assert found.to_list() == [expected] * 2
