import pytest
from tests.sharing.rules.written import condition

from thalweg.sharing.rules.push_not import push_not


@pytest.mark.parametrize(
    ("text", "pushed"),
    [
        ("NOT v < 3", "v >= 3"),
        ("NOT v = 3", "v <> 3"),
        ("NOT (NOT v LIKE 'a')", "v LIKE 'a'"),
        ("NOT (v < 3 AND k = 1)", "NOT v < 3 OR NOT k = 1"),
        ("NOT (v < 3 OR k = 1)", "NOT v < 3 AND NOT k = 1"),
        ("NOT v IN (1, 2)", "v <> 1 AND v <> 2"),
        ("NOT (v IS NULL)", "v IS NOT NULL"),
        ("NOT (t LIKE 'a')", "NOT (t LIKE 'a')"),
    ],
)
def test_not_goes_one_step_inward(text: str, pushed: str) -> None:
    text, pushed = text.replace("v LIKE", "t LIKE"), pushed.replace("v LIKE", "t LIKE")
    assert push_not(condition(text)) == condition(pushed)
