from hypothesis import given, settings
from tests.sharing.drawing import plan_of, spj_queries, streams

from thalweg.engine.arrivals import Arrival
from thalweg.engine.changelog import difference
from thalweg.engine.reference import evaluate
from thalweg.plan.expr import columns_of
from thalweg.sharing.core import NormalQuery
from thalweg.sharing.normal import normalise
from thalweg.sharing.permutation import reorderings
from thalweg.sharing.plans import core_plan


@settings(max_examples=40)
@given(spj_queries(), streams(most=4))
def test_a_core_with_its_leaves_exchanged_is_the_same_query(
    text: str, inputs: dict[str, list[Arrival]]
) -> None:
    query = normalise(plan_of(text))
    assert isinstance(query, NormalQuery)
    first, *others = reorderings(query.core)
    assert first == query.core
    expected = evaluate(core_plan(first), inputs)
    for other in others:
        assert not difference(expected, evaluate(core_plan(other), inputs))


def test_only_self_joins_have_more_than_one_order() -> None:
    def count(text: str) -> int:
        query = normalise(plan_of(text))
        assert isinstance(query, NormalQuery)
        return len(list(reorderings(query.core)))

    assert count("SELECT a.k FROM A a, B b") == 1
    assert count("SELECT a.k FROM A a, A b, A c, B d") == 6


def test_a_residual_keeps_its_constants_when_its_leaf_moves() -> None:
    query = normalise(plan_of("SELECT a.k FROM A a, A b WHERE a.k = b.k AND a.v <> 7"))
    assert isinstance(query, NormalQuery)
    first, other = (c.residuals[0] for c in reorderings(query.core))
    assert first.constants == other.constants == (7,)
    columns = [columns_of(r.condition) for r in (first, other)]
    assert sorted(map(tuple, columns)) == [(1,), (6,)]
