from tests.sharing.rules.written import value
from tests.sharing.test_normal import core

from thalweg.plan.expr import Expr
from thalweg.sharing.facts import Facts, facts_of


def facts(where: str) -> Facts:
    return facts_of(core(f"SELECT k FROM A [Now] WHERE {where}"))


def null_free(where: str, *names: str) -> bool:
    columns: list[Expr] = [value(n) for n in names]
    return facts(where).never_null.issuperset(columns)


def test_what_is_compared_is_not_null_and_neither_is_what_it_is_made_of() -> None:
    assert null_free("v > 3", "v")
    assert null_free("v + k > 3", "v", "k")
    assert null_free("CAST(t AS INTEGER) < v", "t", "v")
    assert null_free("v IS NOT NULL", "v")
    assert not null_free("COALESCE(v, k) > 3", "v")
    assert not null_free("v > 3 OR k > 3", "v")


def test_contradictions_are_found() -> None:
    for where in (
        "v > 3 AND v < 3",
        "v = 3 AND v <> 3",
        "v > 3 AND v IN (1, 2)",
        "v IS NULL AND v > 1",
        "v = k AND v > 3 AND k < 3",
        "1 = 2",
        "v < k AND k = v",
    ):
        assert facts(where).contradiction, where


def test_what_can_be_met_is_no_contradiction() -> None:
    for where in ("v > 3 AND k < 3", "v <> 3 AND v >= 3", "v IN (1, 2) AND v < 2", "v IS NULL"):
        assert not facts(where).contradiction, where


def test_equal_columns_go_by_the_smallest_name() -> None:
    found = facts("v = k AND t = 'a'")
    assert found.renamed(value("v + 1")) == value("k + 1")
    assert found.range(value("k")) is not None
    assert found.range(value("x")) is None
