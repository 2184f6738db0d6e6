"""CAST, as docs/values.md has it."""

from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.engine.reference.casts import cast_value
from thalweg.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TIMESTAMP,
    VARCHAR,
    Kind,
    can_cast,
    decimal,
)


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (2**31, BIGINT, INTEGER, None),
        (-(2**31), BIGINT, INTEGER, -(2**31)),
        (2.5, DOUBLE, INTEGER, 3),
        (-2.5, DOUBLE, BIGINT, -3),
        (0.49999999999999994, DOUBLE, BIGINT, 0),
        (1e19, DOUBLE, BIGINT, None),
        (Decimal("2.50"), decimal(2), INTEGER, 3),
        (Decimal("-2.49"), decimal(2), BIGINT, -2),
        (True, BOOLEAN, INTEGER, 1),
        (2, INTEGER, BOOLEAN, True),
        (0, BIGINT, BOOLEAN, False),
        (2**53 + 1, BIGINT, DOUBLE, 2.0**53),
        (Decimal("0.1"), decimal(1), DOUBLE, 0.1),
        (True, BOOLEAN, DOUBLE, 1.0),
        (1.005, DOUBLE, decimal(2), Decimal("1.01")),
        (0.1, DOUBLE, decimal(20), Decimal("0.10000000000000000000")),
        (1e38, DOUBLE, decimal(0), None),
        (1e37, DOUBLE, decimal(0), Decimal(10**37)),
        (5, BIGINT, decimal(2), Decimal("5.00")),
        (5, BIGINT, decimal(38), None),
        (True, BOOLEAN, decimal(1), Decimal("1.0")),
        (Decimal("1.25"), decimal(2), decimal(1), Decimal("1.3")),
        (Decimal("-1.25"), decimal(2), decimal(1), Decimal("-1.3")),
        (Decimal("1.2"), decimal(1), decimal(3), Decimal("1.200")),
        (" 42 ", VARCHAR, INTEGER, 42),
        ("+42", VARCHAR, BIGINT, 42),
        ("4.2", VARCHAR, INTEGER, None),
        ("٤٢", VARCHAR, INTEGER, None),
        ("4_2", VARCHAR, INTEGER, None),
        ("", VARCHAR, INTEGER, None),
        ("9" * 5000, VARCHAR, BIGINT, None),
        ("9223372036854775808", VARCHAR, BIGINT, None),
        (".5", VARCHAR, DOUBLE, 0.5),
        ("5.", VARCHAR, DOUBLE, 5.0),
        ("-1.5e3", VARCHAR, DOUBLE, -1500.0),
        ("-0", VARCHAR, DOUBLE, 0.0),
        ("1e999", VARCHAR, DOUBLE, None),
        ("nan", VARCHAR, DOUBLE, None),
        ("inf", VARCHAR, DOUBLE, None),
        ("2.345", VARCHAR, decimal(2), Decimal("2.35")),
        ("1e3", VARCHAR, decimal(2), None),
        (" TRUE", VARCHAR, BOOLEAN, True),
        ("n", VARCHAR, BOOLEAN, False),
        ("on", VARCHAR, BOOLEAN, None),
        ("2024-02-29", VARCHAR, DATE, date(2024, 2, 29)),
        ("2023-02-29", VARCHAR, DATE, None),
        ("2024-2-9", VARCHAR, DATE, None),
        ("2024-02-29 01:02:03", VARCHAR, DATE, None),
        ("2024-02-29", VARCHAR, TIMESTAMP, datetime(2024, 2, 29)),
        ("2024-02-29 01:02:03", VARCHAR, TIMESTAMP, datetime(2024, 2, 29, 1, 2, 3)),
        (" 2024-02-29T01:02:03.5Z", VARCHAR, TIMESTAMP, datetime(2024, 2, 29, 1, 2, 3, 500000)),
        ("2024-02-29T01:02:03+02:00", VARCHAR, TIMESTAMP, datetime(2024, 2, 28, 23, 2, 3)),
        ("2024-02-29 23:02:03.5-0130", VARCHAR, TIMESTAMP, datetime(2024, 3, 1, 0, 32, 3, 500000)),
        ("2024-02-29 01:02:03+02", VARCHAR, TIMESTAMP, datetime(2024, 2, 28, 23, 2, 3)),
        ("2024-02-29 01:02:03-00:00", VARCHAR, TIMESTAMP, datetime(2024, 2, 29, 1, 2, 3)),
        ("2024-02-29 01:02:03+24:00", VARCHAR, TIMESTAMP, None),
        ("2024-02-29 01:02:03+02:60", VARCHAR, TIMESTAMP, None),
        ("2024-02-29 01:02:03Z+02", VARCHAR, TIMESTAMP, None),
        ("2024-02-29 01:02:03 +02", VARCHAR, TIMESTAMP, None),
        ("2024-02-29+02:00", VARCHAR, TIMESTAMP, None),
        ("0001-01-01 00:00:00+00:01", VARCHAR, TIMESTAMP, None),
        ("9999-12-31 23:59:59-00:01", VARCHAR, TIMESTAMP, None),
        ("2024-02-29 24:00:00", VARCHAR, TIMESTAMP, None),
        ("2024-02-29 01:02", VARCHAR, TIMESTAMP, None),
        (datetime(2024, 2, 29, 23), TIMESTAMP, DATE, date(2024, 2, 29)),
        (date(2024, 2, 29), DATE, TIMESTAMP, datetime(2024, 2, 29)),
        (False, BOOLEAN, VARCHAR, "false"),
        (-7, INTEGER, VARCHAR, "-7"),
        (1.0, DOUBLE, VARCHAR, "1.0"),
        (1e16, DOUBLE, VARCHAR, "1e+16"),
        (0.00015, DOUBLE, VARCHAR, "0.00015"),
        (1.5e-7, DOUBLE, VARCHAR, "1.5e-07"),
        (Decimal("1.50"), decimal(2), VARCHAR, "1.50"),
        (Decimal("0E-8"), decimal(8), VARCHAR, "0.00000000"),
        (date(2024, 2, 9), DATE, VARCHAR, "2024-02-09"),
        (datetime(2024, 2, 9), TIMESTAMP, VARCHAR, "2024-02-09 00:00:00"),
        (datetime(2024, 2, 9, 1, 2, 3, 50), TIMESTAMP, VARCHAR, "2024-02-09 01:02:03.00005"),
        (datetime(2024, 2, 9, 1, 2, 30), TIMESTAMP, VARCHAR, "2024-02-09 01:02:30"),
    ],
)
def test_cast(value, source, target, result):
    assert can_cast(source, target)
    found = cast_value(value, source, target)
    assert (found, type(found), str(found)) == (result, type(result), str(result))


TYPES = [BOOLEAN, INTEGER, BIGINT, DOUBLE, decimal(2), VARCHAR, DATE, TIMESTAMP]
EXAMPLES = {
    Kind.BOOLEAN: True,
    Kind.INTEGER: 7,
    Kind.BIGINT: 7,
    Kind.DOUBLE: 7.5,
    Kind.DECIMAL: Decimal("7.50"),
    Kind.VARCHAR: "7",
    Kind.DATE: date(2024, 1, 1),
    Kind.TIMESTAMP: datetime(2024, 1, 1),
}


@pytest.mark.parametrize("source", TYPES, ids=str)
@pytest.mark.parametrize("target", TYPES, ids=str)
def test_every_cast_that_the_plan_allows_is_implemented(source, target):
    if can_cast(source, target):
        cast_value(EXAMPLES[source.kind], source, target)
    assert cast_value(None, source, target) is None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_survives_its_text(value):
    text = cast_value(value + 0.0, DOUBLE, VARCHAR)
    assert cast_value(text, VARCHAR, DOUBLE) == value


@given(st.datetimes())
def test_a_timestamp_survives_its_text(moment):
    text = cast_value(moment, TIMESTAMP, VARCHAR)
    assert cast_value(text, VARCHAR, TIMESTAMP) == moment


@given(st.text())
def test_no_text_breaks_a_cast(text):
    for target in TYPES:
        cast_value(text, VARCHAR, target)
