from tests.sharing.drawing import plan_of

from thalweg.plan.expr import Col
from thalweg.sharing.core import Computed, Grouped, NormalQuery, Step
from thalweg.sharing.normal import normalise


def above(text: str) -> tuple[Step, ...]:
    found = normalise(plan_of(text))
    assert isinstance(found, NormalQuery)
    return found.above


def test_keys_and_aggregates_stand_in_one_order_and_the_result_in_its_own() -> None:
    grouped, shown = above("SELECT SUM(v) AS s, t, COUNT(*) AS n, k FROM A GROUP BY t, k")
    assert isinstance(grouped, Grouped)
    assert [k.index for k in grouped.keys if isinstance(k, Col)] == [0, 2]
    assert [c.function for c in grouped.aggregates] == ["count", "sum"]
    assert isinstance(shown, Computed)
    assert [e.index for e in shown.exprs if isinstance(e, Col)] == [3, 1, 2, 0]


def test_no_projection_is_needed_where_the_orders_agree() -> None:
    assert [type(s) for s in above("SELECT k, COUNT(*) AS n FROM A GROUP BY k")] == [Grouped]
