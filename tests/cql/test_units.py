from decimal import Decimal

import pytest

from thalweg.cql.errors import Mistake
from thalweg.cql.syntax import Duration
from thalweg.cql.units import MICROSECONDS, in_words, microseconds, parse_amount


@pytest.mark.parametrize(
    ("amount", "unit", "length"),
    [
        ("1", "microsecond", 1),
        ("5", "MS", 5_000),
        ("1.5", "sec", 1_500_000),
        ("10", "Minutes", 600_000_000),
        ("3", "Hour", 10_800_000_000),
        ("1", "d", 86_400_000_000),
        ("2", "weeks", 1_209_600_000_000),
        ("0.000001", "s", 1),
    ],
)
def test_lengths(amount: str, unit: str, length: int) -> None:
    assert microseconds(Duration(Decimal(amount), unit)) == length


def test_every_unit_has_a_singular_and_a_plural() -> None:
    long_names = {u for u in MICROSECONDS if u.endswith("s") and len(u) > 4}
    assert long_names <= {u + "s" for u in MICROSECONDS}


@pytest.mark.parametrize("unit", ["m", "month", "fortnight"])
def test_units_that_are_none(unit: str) -> None:
    with pytest.raises(Mistake):
        microseconds(Duration(Decimal(1), unit))


def test_parts_of_a_microsecond_are_refused() -> None:
    with pytest.raises(Mistake, match="whole microseconds"):
        microseconds(Duration(Decimal("0.0001"), "ms"))


@pytest.mark.parametrize("text", ["1e3", "x", "", "--1", "1" * 16, "٣"])
def test_amounts_that_are_none(text: str) -> None:
    with pytest.raises(Mistake):
        parse_amount(text, (0, 1))


def test_lengths_in_words() -> None:
    assert [in_words(us) for us in (1, 1_500, 1_000, 90_000_000, 7_200_000_000)] == [
        "1 µs",
        "1500 µs",
        "1 ms",
        "90 s",
        "2 h",
    ]
