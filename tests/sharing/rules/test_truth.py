import pytest
from tests.sharing.rules.written import condition

from thalweg.plan.expr import FALSE
from thalweg.sharing.rules.truth import only_if_true


@pytest.mark.parametrize(
    ("text", "simpler"),
    [
        ("p", "p = TRUE"),
        ("NOT p", "p = FALSE"),
        ("w = w", "w IS NOT NULL"),
        ("w >= w", "w IS NOT NULL"),
        ("w IN (1, NULL, 2)", "w IN (1, 2)"),
        ("w IN (1, NULL)", "w = 1"),
    ],
)
def test_unknown_is_as_good_as_false(text: str, simpler: str) -> None:
    assert only_if_true(condition(text, "B")) == condition(simpler, "B")


@pytest.mark.parametrize("text", ["w < w", "w <> w", "w IN (NULL, NULL)", "NULL"])
def test_what_is_never_true_is_false(text: str) -> None:
    assert only_if_true(condition(text, "B")) == FALSE
