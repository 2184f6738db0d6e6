from thalweg.plan.expr import Col
from thalweg.plan.types import INTEGER
from thalweg.sharing.core import Computed, WithoutRepeats
from thalweg.sharing.rules.drop_identities import drop_identities

FIRST, SECOND = Col(0, INTEGER), Col(1, INTEGER)


def test_all_columns_as_they_stand_are_no_projection() -> None:
    assert drop_identities((WithoutRepeats(), Computed((FIRST, SECOND))), 2) == (WithoutRepeats(),)


def test_fewer_columns_or_another_order_are_one() -> None:
    for exprs in ((FIRST,), (SECOND, FIRST)):
        assert drop_identities((Computed(exprs),), 2) == (Computed(exprs),)
