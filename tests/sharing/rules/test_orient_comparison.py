import pytest
from tests.sharing.rules.written import condition

from thalweg.sharing.rules.orient_comparison import orient_comparison


@pytest.mark.parametrize(
    ("text", "oriented"),
    [
        ("3 < v", "v > 3"),
        ("3 >= v", "v <= 3"),
        ("3 = v", "v = 3"),
        ("v > k", "k < v"),
        ("v + 1 = x", "x = v + 1"),
        ("k < v", "k < v"),
    ],
)
def test_constants_go_right_and_smaller_columns_left(text: str, oriented: str) -> None:
    assert orient_comparison(condition(text)) == condition(oriented)
