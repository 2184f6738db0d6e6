import pytest
from tests.sharing.rules.written import condition

from thalweg.sharing.rules.order_options import order_options


@pytest.mark.parametrize(
    ("text", "ordered"),
    [("v IN (3, 1, 3)", "v IN (1, 3)"), ("v IN (3)", "v = 3"), ("v IN (2, 2)", "v = 2")],
)
def test_options_stand_once_and_in_order(text: str, ordered: str) -> None:
    assert order_options(condition(text)) == condition(ordered)


def test_a_null_among_the_options_stays() -> None:
    assert order_options(condition("v IN (NULL, 1)")) == order_options(condition("v IN (1, NULL)"))
