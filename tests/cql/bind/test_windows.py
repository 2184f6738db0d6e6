from decimal import Decimal

import pytest

from thalweg.cql.bind.windows import instants
from thalweg.cql.errors import Mistake
from thalweg.cql.syntax import Duration


@pytest.mark.parametrize(
    ("amount", "unit", "resolution_us", "count"),
    [
        ("5", "hour", 1_000_000, 18_000),
        ("1.5", "s", 500_000, 3),
        ("7", None, 500_000, 7),
        ("0", None, 500_000, 0),
        ("-1", "s", 500_000, -2),
    ],
)
def test_lengths_in_units_of_the_resolution(
    amount: str, unit: str | None, resolution_us: int, count: int
) -> None:
    assert instants(Duration(Decimal(amount), unit), resolution_us, True) == count


@pytest.mark.parametrize(("amount", "unit"), [("750", "ms"), ("0.5", None)])
def test_parts_of_an_instant_are_refused(amount: str, unit: str | None) -> None:
    with pytest.raises(Mistake, match="whole number"):
        instants(Duration(Decimal(amount), unit), 500_000, True)


def test_only_counted_time_goes_without_a_unit() -> None:
    with pytest.raises(Mistake, match="unit"):
        instants(Duration(Decimal(5)), 1_000, False)
