"""Aggregate functions over one group, as docs/values.md has them."""

from decimal import Decimal
from itertools import permutations

import pytest

from thalweg.engine.reference.aggregates import aggregate
from thalweg.plan.aggregates import AGGREGATES, AggCall
from thalweg.plan.expr import Col
from thalweg.plan.types import BIGINT, DOUBLE, INTEGER, VARCHAR, decimal

MAX = 2**63 - 1


def over(function, sql_type, values, distinct=False):
    return aggregate(AggCall(function, Col(0, sql_type), distinct), [(v,) for v in values])


@pytest.mark.parametrize(
    ("function", "sql_type", "values", "result"),
    [
        ("sum", INTEGER, [1, None, 2], 3),
        ("sum", BIGINT, [MAX, 1, -1], MAX),
        ("sum", BIGINT, [MAX, 1], None),
        ("sum", INTEGER, [2**31 - 1, 1], 2**31),
        ("sum", DOUBLE, [1e308, 1e308, -1e308], 1e308),
        ("sum", DOUBLE, [1e308, 1e308], None),
        ("sum", DOUBLE, [0.1] * 10, 1.0),
        ("sum", DOUBLE, [1e16, 1.0, -1e16], 1.0),
        ("sum", decimal(2), [Decimal("0.10"), Decimal("0.20")], Decimal("0.30")),
        ("sum", decimal(0), [Decimal("9" * 38), Decimal(1)], None),
        ("avg", BIGINT, [1, 2], 1.5),
        ("avg", BIGINT, [MAX, MAX], float(MAX)),
        ("avg", decimal(1), [Decimal("0.1"), Decimal("0.2")], 0.15),
        ("avg", DOUBLE, [1e308, 1e308], 1e308),
        ("avg", BIGINT, [None], None),
        ("min", VARCHAR, ["b", None, "B"], "B"),
        ("max", BIGINT, [None, -1], -1),
        ("count", BIGINT, [None, 3, 3], 2),
    ],
)
def test_aggregate(function, sql_type, values, result):
    found = over(function, sql_type, values)
    assert (found, type(found), str(found)) == (result, type(result), str(result))


@pytest.mark.parametrize("function", AGGREGATES)
@pytest.mark.parametrize("values", [[], [None, None]])
def test_of_no_values_count_is_zero_and_all_else_null(function, values):
    assert over(function, BIGINT, values) == (0 if function == "count" else None)


def test_count_star_counts_rows():
    assert aggregate(AggCall("count"), [(None,), (None,)]) == 2


@pytest.mark.parametrize(("function", "result"), [("count", 2), ("sum", 5), ("avg", 2.5)])
def test_distinct_drops_repeated_values_and_nulls(function, result):
    assert over(function, BIGINT, [2, 3, 3, None, 2], distinct=True) == result


def test_sum_of_doubles_does_not_depend_on_the_order():
    values = [1e16, 1.0, -1e16, 0.1, 3.3e-9]
    assert len({over("sum", DOUBLE, order) for order in permutations(values)}) == 1
