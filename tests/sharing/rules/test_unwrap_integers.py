from tests.sharing.rules.written import condition

from thalweg.sharing.rules.unwrap_integers import unwrap_integers


def test_a_constant_that_fits_meets_the_column_itself() -> None:
    assert unwrap_integers(condition("CAST(v AS BIGINT) > 3")) == condition("v > 3")


def test_a_constant_beyond_the_columns_type_does_not() -> None:
    large = condition("v < 3000000000")
    assert unwrap_integers(large) is large


def test_other_casts_stay() -> None:
    text = condition("CAST(t AS BIGINT) > 3")
    assert unwrap_integers(text) is text
