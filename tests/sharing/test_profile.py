"""A member's result is its profile over the representative's interval rows."""

from __future__ import annotations

from hypothesis import given, settings
from tests.sharing.drawing import plan_of, query_sets, streams
from tests.sharing.interval_rows import interval_rows, profiled

from thalweg.engine.arrivals import Arrival
from thalweg.engine.changelog import difference
from thalweg.engine.reference import evaluate
from thalweg.sharing.core import Core, NormalQuery
from thalweg.sharing.normal import normalise
from thalweg.sharing.plans import core_plan
from thalweg.sharing.profile import profile
from thalweg.sharing.representative import representative


def core(text: str) -> Core:
    query = normalise(plan_of(text))
    assert isinstance(query, NormalQuery), query
    return query.core


def groups(texts: list[str]) -> list[list[Core]]:
    """By signature: a drawn condition may be a join."""
    found: dict[object, list[Core]] = {}
    for text in texts:
        one = core(text)
        found.setdefault(one.signature, []).append(one)
    return list(found.values())


@settings(max_examples=120)
@given(query_sets(), streams())
def test_each_member_gets_its_own_changelog_from_the_representative(
    texts: list[str], inputs: dict[str, list[Arrival]]
) -> None:
    for members in groups(texts):
        rep = representative(members)
        rows = interval_rows(rep, inputs)
        for member in members:
            assert rep.covers(member)
            expected = evaluate(core_plan(member), inputs)
            assert not difference(expected, profiled(profile(member, rep), rows))


def test_only_what_was_loosened_is_checked_again() -> None:
    members = [
        core("SELECT k FROM A [Range 3] WHERE v > 3 AND x = 1e0 AND t LIKE 'a%' AND k <> 1"),
        core("SELECT k FROM A [Range 5] WHERE v > 5 AND x = 1e0 AND t LIKE 'a%' AND k <> 2"),
    ]
    rep = representative(members)
    loose, tight = (profile(m, rep) for m in members)
    assert loose.ranges == ()
    assert [str(values) for _, values in tight.ranges] == ["[6, ∞)"]
    assert [r.constants for r in tight.residuals] == [(2,)]
    assert tight.outputs == members[1].outputs
    assert tight.windows == members[1].windows


def test_a_row_is_valid_while_all_its_sources_are() -> None:
    member = core("SELECT a.k FROM A [Range 3] a, B [Now] b WHERE a.k = b.k")
    own = profile(member, representative([member]))
    assert own.interval((5, 7)) == (7, 8)
    start, end = own.interval((2, 7))
    assert start >= end
