import pytest
from tests.sharing.rules.written import condition, value

from thalweg.sharing.rules.order_operands import order_operands


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("v = 1 OR (k = 2 OR v = 1)", "k = 2 OR v = 1"),
        ("(v < 1 AND t = 'a') AND k = 1", "k = 1 AND (v < 1 AND t = 'a')"),
    ],
)
def test_and_and_or_are_flat_and_in_order(one: str, other: str) -> None:
    assert order_operands(condition(one)) == order_operands(condition(other))


def test_sums_and_products_of_one_type_are_in_order() -> None:
    assert order_operands(value("v + k")) == order_operands(value("k + v"))
    assert order_operands(value("x * (x + 1e0)")) == order_operands(value("(x + 1e0) * x"))
    assert order_operands(value("v - k")) != order_operands(value("k - v"))
