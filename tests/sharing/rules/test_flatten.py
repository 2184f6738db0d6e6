from tests.sharing.drawing import plan_of

from thalweg.plan.text import expr_text
from thalweg.sharing.block import Block
from thalweg.sharing.core import Kept, WithoutRepeats
from thalweg.sharing.rules.flatten import flatten


def described(block: Block) -> tuple[list[str], list[str], list[str]]:
    fields = tuple(f for leaf in block.leaves for f in leaf.stream.fields)
    return (
        [f"{leaf.stream.name} {leaf.window}" for leaf in block.leaves],
        [expr_text(c, fields) for c in block.conditions],
        [expr_text(e, fields) for e in block.outputs or ()],
    )


def test_views_and_subqueries_disappear() -> None:
    text = "SELECT u, q.w FROM Near n, (SELECT w, k FROM B [Now] WHERE w > 1) q WHERE n.k = q.k"
    assert described(flatten(plan_of(text))) == (
        ["A [Range 3]", "B [Now]"],
        ["v > 0", "w > 1", "k#0 = k#5"],
        ["CAST(v AS BIGINT) + 1", "w"],
    )


def test_above_distinct_a_filter_is_a_step() -> None:
    block = flatten(plan_of("SELECT * FROM (SELECT DISTINCT k FROM A) q WHERE k > 1"))
    assert [type(s) for s in block.above][:2] == [WithoutRepeats, Kept]
    assert block.conditions == ()
