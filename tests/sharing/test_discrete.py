from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from thalweg.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TIMESTAMP,
    VARCHAR,
    SqlType,
    decimal,
)
from thalweg.sharing.discrete import range_of
from thalweg.sharing.ranges import Bound, Range

MAX_DECIMAL = Decimal("9" * 36 + ".99")


@pytest.mark.parametrize(
    ("type_", "value", "above", "below"),
    [
        (INTEGER, 3, 4, 2),
        (BIGINT, -1, 0, -2),
        (INTERVAL, 10, 11, 9),
        (decimal(2), Decimal("1.50"), Decimal("1.51"), Decimal("1.49")),
        (decimal(2), Decimal("-0.01"), Decimal("0.00"), Decimal("-0.02")),
        (DATE, date(2024, 2, 29), date(2024, 3, 1), date(2024, 2, 28)),
        (
            TIMESTAMP,
            datetime(2024, 1, 1),
            datetime(2024, 1, 1, 0, 0, 0, 1),
            datetime(2023, 12, 31, 23, 59, 59, 999999),
        ),
    ],
)
def test_open_bounds_are_closed_at_the_neighbour(
    type_: SqlType, value: Any, above: Any, below: Any
) -> None:
    assert range_of(">", value, type_) == Range(low=Bound(above, True))
    assert range_of("<", value, type_) == Range(high=Bound(below, True))


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (BOOLEAN, True),
        (INTEGER, (1 << 31) - 1),
        (BIGINT, (1 << 63) - 1),
        (DATE, date.max),
        (TIMESTAMP, datetime.max),
        (decimal(2), MAX_DECIMAL),
    ],
)
def test_nothing_lies_beyond_the_last_value_of_a_type(type_: SqlType, value: Any) -> None:
    assert range_of(">", value, type_).is_empty


@pytest.mark.parametrize(("type_", "value"), [(DOUBLE, 1.5), (VARCHAR, "a")])
def test_what_has_no_neighbours_keeps_its_open_bounds(type_: SqlType, value: Any) -> None:
    assert range_of(">", value, type_) == Range(low=Bound(value, False))
    assert range_of("<", value, type_) == Range(high=Bound(value, False))


def test_an_equality_is_a_point_and_the_others_are_closed() -> None:
    assert range_of("=", 3, INTEGER).is_point
    assert range_of(">=", 3, INTEGER) == Range(low=Bound(3, True))
    assert range_of("<=", "a", VARCHAR) == Range(high=Bound("a", True))


def test_inequality_is_no_range() -> None:
    with pytest.raises(ValueError, match="more than one range"):
        range_of("<>", 3, INTEGER)
