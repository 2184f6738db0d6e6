"""Classes of equal expressions, by what becomes of whole queries."""

from tests.sharing.drawing import plan_of

from thalweg.plan.text import expr_text
from thalweg.sharing.core import Core, NormalQuery
from thalweg.sharing.normal import normalise
from thalweg.sharing.plans import fields_of


def core(text: str) -> Core:
    query = normalise(plan_of(text))
    assert isinstance(query, NormalQuery)
    return query.core


def joins(text: str) -> list[str]:
    found = core(text)
    return [expr_text(j, fields_of(found.streams)) for j in found.joins]


def test_a_class_is_written_from_its_smallest_member() -> None:
    three = "SELECT b.w FROM A a, A c, B b WHERE b.k = c.k AND a.k = b.k"
    assert joins(three) == ["k#0 = k#5", "k#0 = k#10"]


def test_the_smallest_member_stands_for_the_others_in_conditions_and_outputs() -> None:
    found = core("SELECT b.k FROM A a, B b WHERE b.k = a.k AND b.k > 3 AND b.k <> 7")
    fields = fields_of(found.streams)
    assert [expr_text(e, fields) for e in found.outputs] == ["k#0"]
    assert [expr_text(e, fields) for e, _ in found.ranges] == ["k#0"]
    assert [expr_text(r.condition, fields) for r in found.residuals] == ["k#0 <> 7"]


def test_an_equality_between_leaves_is_a_join_though_it_has_a_constant() -> None:
    assert joins("SELECT w FROM A a, B b WHERE a.k + 1 = b.k")
    assert not joins("SELECT k FROM A WHERE k + 1 = v + 2")


def test_a_condition_that_equality_makes_impossible_is_found() -> None:
    found = core("SELECT w FROM A a, B b WHERE a.k = b.k AND a.k < b.k")
    assert [r.constants for r in found.residuals] == [(False,)]


def test_an_equality_that_follows_from_others_goes() -> None:
    assert joins("SELECT v FROM A WHERE k = v AND v = k AND k + 1 = v + 1") == ["k = v"]
