from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sharing.rules.test_rules import texts
from tests.sharing.rules.written import condition, value

from thalweg.plan.expr import walk
from thalweg.sharing.ordering import expr_key, in_order


@settings(max_examples=50)
@given(st.lists(texts(), min_size=2, max_size=3))
def test_keys_are_equal_only_for_equal_expressions(written: list[str]) -> None:
    parts = [part for text in written for part in walk(condition(text))]
    keys = {expr_key(p): p for p in parts}
    assert all(keys[expr_key(p)] == p for p in parts)


def test_columns_stand_by_number_and_before_all_else() -> None:
    k, v, one = value("k"), value("v"), value("1")
    both = value("k + v")
    assert in_order([both, one, v, k, v]) == (k, v, both, one)
