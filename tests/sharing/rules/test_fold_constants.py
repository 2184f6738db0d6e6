import pytest
from tests.sharing.rules.written import condition, value

from thalweg.plan.expr import FALSE, TRUE, Lit
from thalweg.plan.types import BIGINT, BOOLEAN
from thalweg.sharing.rules.fold_constants import fold_constants


@pytest.mark.parametrize(
    ("text", "folded"),
    [("1 < 2", TRUE), ("'a' = 'b'", FALSE), ("v > NULL", Lit(None, BOOLEAN)), ("NULL = 1", None)],
)
def test_a_comparison_of_constants_is_decided(text: str, folded: Lit | None) -> None:
    assert fold_constants(condition(text)) == (folded or Lit(None, BOOLEAN))


def test_what_decides_a_conjunction_or_disjunction_alone_is_all_of_it() -> None:
    assert fold_constants(condition("v > 1 OR TRUE")) == TRUE
    assert fold_constants(condition("v > 1 OR FALSE")) == condition("v > 1")
    assert fold_constants(condition("v > 1 OR NULL")) == condition("v > 1 OR NULL")


def test_whole_numbers_are_added_where_they_fit() -> None:
    assert fold_constants(value("1 + 2")) == Lit(3, BIGINT)
    assert fold_constants(value("9223372036854775807 + 1")) == value("9223372036854775807 + 1")
    assert fold_constants(value("1 / 0")) == value("1 / 0")


def test_doubles_and_decimals_are_left_to_the_engine() -> None:
    assert fold_constants(value("0.1e0 + 0.2e0")) == value("0.1e0 + 0.2e0")
    assert fold_constants(value("0.1 * 3.0")) == value("0.1 * 3.0")
