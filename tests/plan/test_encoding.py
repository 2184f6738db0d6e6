"""Encoded plans are part of the data directory's format: what is written here may never change."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.plan.aggregates import AggCall
from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.encoding import PLAN_TAGS, Codec, EncodingError
from thalweg.plan.expr import Call, Case, Cast, Col, Expr, Lit
from thalweg.plan.types import BIGINT, BOOLEAN, DOUBLE, TIMESTAMP, VARCHAR, decimal
from thalweg.plan.windows import RowsWindow, TimeWindow

CODEC = Codec(PLAN_TAGS)

values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.dates(),
    st.datetimes(),
)
exprs: st.SearchStrategy[Expr] = st.recursive(
    st.one_of(
        st.builds(Col, st.integers(0, 99), st.sampled_from([BIGINT, DOUBLE, decimal(2)])),
        st.builds(Lit, values, st.sampled_from([VARCHAR, TIMESTAMP, decimal(38)])),
    ),
    lambda inner: st.one_of(
        st.builds(lambda a, b: Call("=", (a, b), BOOLEAN), inner, inner),
        st.builds(lambda a: Cast(Lit(1, BIGINT), VARCHAR) if a else Lit(2, BIGINT), st.booleans()),
    ),
    max_leaves=8,
)


@given(exprs)
def test_an_expression_reads_back_and_equal_ones_have_equal_bytes(expr: Expr) -> None:
    encoded = CODEC.encode(expr)
    assert CODEC.decode(encoded) == expr
    assert CODEC.encode(CODEC.decode(encoded)) == encoded


@pytest.mark.parametrize(
    "value",
    [
        TimeWindow(None),
        TimeWindow(5, 2),
        RowsWindow(3, 1, (0, 2)),
        AggCall("count"),
        AggCall("sum", Col(1, DOUBLE), True),
        Case(((Lit(True, BOOLEAN), Lit(1, BIGINT)),), Lit(2, BIGINT), BIGINT),
        StreamDef("S", (Field("a", decimal(3)),), "ts", idle_ms=5, options=(("x", "y"),)),
        Lit(datetime(2024, 2, 3, 4, 5, 6, 7), TIMESTAMP),
        Lit(date(2024, 2, 3), TIMESTAMP),
        Lit(Decimal("1.50"), decimal(2)),
    ],
)
def test_everything_that_plans_are_made_of_reads_back(value: object) -> None:
    assert CODEC.decode(CODEC.encode(value)) == value


def test_a_field_behind_one_that_equality_does_not_look_at_reads_back() -> None:
    placed = StreamDef("S", (Field("x", BIGINT),), "ts", BIGINT, added=1).placed()
    found = CODEC.decode(CODEC.encode(placed))
    assert found == placed
    assert (found.is_placed, found.added) == (True, 0)


def test_names_of_columns_do_not_matter() -> None:
    assert CODEC.encode(Col(1, BIGINT, "price")) == CODEC.encode(Col(1, BIGINT))


def test_the_form_of_what_is_written() -> None:
    condition = Call("=", (Col(2, decimal(2)), Lit(Decimal("1.50"), decimal(2))), BOOLEAN)
    number = {"type": [{"kind": "DECIMAL"}, 2]}
    assert CODEC.plain((condition, TimeWindow(60), TimeWindow(60, 5))) == [
        {
            "call": [
                "=",
                [{"column": [2, number]}, {"literal": [{"decimal": "1.50"}, number]}],
                {"type": [{"kind": "BOOLEAN"}]},
            ]
        },
        {"time window": [60]},
        {"time window": [60, 5]},
    ]


class Colour(enum.Enum):
    RED = "red"


@dataclass(frozen=True)
class Old:
    a: int


@dataclass(frozen=True)
class New:
    """The same under another name, and with a field more."""

    a: int
    b: Colour = Colour.RED


def test_a_class_may_be_renamed_and_get_a_field_with_a_default() -> None:
    before = Codec({"thing": Old}).encode(Old(1))
    after = Codec({"thing": New, "colour": Colour})
    assert after.decode(before) == New(1)
    assert after.encode(New(1)) == before


def test_what_nobody_knows_is_an_error() -> None:
    with pytest.raises(EncodingError, match="'novelty' is unknown"):
        CODEC.decode(msgspec.msgpack.encode({"novelty": []}))
    with pytest.raises(TypeError, match="Old has no tag"):
        CODEC.encode(Old(1))
