"""Expressions over columns; what each function returns is held by the conformance kit."""

import polars as pl

from thalweg.engine.shared.expressions.functions import IMPLEMENTATIONS
from thalweg.engine.shared.expressions.translate import to_polars
from thalweg.plan.expr import Col, Lit
from thalweg.plan.functions import FUNCTIONS, call
from thalweg.plan.types import BIGINT, DOUBLE


def test_every_function_of_the_plan_is_implemented():
    assert sorted(FUNCTIONS.keys() - IMPLEMENTATIONS.keys()) == []


def test_a_constant_is_as_long_as_any_frame():
    constant = to_polars(call("round", Lit(2.5, DOUBLE)))
    for height in (0, 1, 3):
        frame = pl.DataFrame({"c0": pl.Series([1] * height, dtype=pl.Int64)})
        assert frame.with_columns(constant.alias("c1"))["c1"].to_list() == [3.0] * height


def test_integer_overflow_is_null_and_never_wraps():
    frame = pl.DataFrame({"c0": [2**62, 5]})
    doubled = call("*", Col(0, BIGINT), Lit(4, BIGINT))
    assert frame.select(to_polars(doubled)).to_series().to_list() == [None, 20]
