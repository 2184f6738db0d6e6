from tests.sharing.rules.written import condition

from thalweg.plan.expr import Col, conjuncts
from thalweg.plan.types import INTEGER
from thalweg.sharing.conditions import classified, residual

WIDTH = 5


def test_conditions_are_joins_ranges_or_residuals() -> None:
    text = "v > 3 AND v <= 7 AND k < v AND t LIKE 'a%' AND v <> 5 AND v IS NOT NULL"
    found = classified((), conjuncts(condition(text)), WIDTH)
    assert found.joins == (condition("k < v"), condition("v IS NOT NULL"))
    assert [(e, str(values)) for e, values in found.ranges] == [(Col(1, INTEGER), "[4, 7]")]
    assert [r.condition for r in found.residuals] == [condition("v <> 5"), condition("t LIKE 'a%'")]


def test_a_range_is_of_an_expression_with_a_column() -> None:
    found = classified((), [condition("UPPER('a') = 'A'")], WIDTH)
    assert found.ranges == ()
    assert len(found.residuals) == 1


def test_residuals_that_differ_by_constants_have_one_template() -> None:
    one = residual(condition("v <> 5 OR t LIKE 'a'"), WIDTH)
    other = residual(condition("v <> 6 OR t LIKE 'b'"), WIDTH)
    assert one.template == other.template
    assert (one.constants, other.constants) == ((5, "a"), (6, "b"))
    assert other.condition == condition("v <> 6 OR t LIKE 'b'")


def test_null_and_the_name_of_a_unit_are_not_pulled_out() -> None:
    assert residual(condition("COALESCE(v, NULL, 2) = 3"), WIDTH).constants == (2, 3)
    unit = condition("EXTRACT(DAY FROM DATE '2024-02-29') <> 1")
    assert "day" not in residual(unit, WIDTH).constants
    assert residual(unit, WIDTH).condition == unit
