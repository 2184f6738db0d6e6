"""A join's shape follows what was measured of it, and stays while that does."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest

from thalweg.cql.compile import compile_script
from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.query import compile_query
from thalweg.engine.shared.kernels.join.probing import probe_name
from thalweg.engine.shared.kernels.join.shapes import MJOIN, Shape, shape_text, shapes_of
from thalweg.engine.shared.tick.shaping.estimates import Estimates
from thalweg.engine.shared.tick.shaping.policy import WINDOWS, Adaptive, Look

WINDOW, SPAN = 1_000, 100
AB: Shape = ((0, 1),)


def join_of(sources: str = "A [Range 999], B [Range 999], C [Range 999]") -> ph.Join:
    text = "".join(
        f"CREATE STREAM {s} (k INTEGER, m INTEGER) TIMESTAMP BY at BIGINT;" for s in "ABCD"
    )
    where = "A.k = B.k AND B.m = C.m" + (" AND C.k = D.k" if "D [" in sources else "")
    (query,) = compile_script(
        f"{text} CREATE QUERY q AS SELECT A.m FROM {sources} WHERE {where};"
    ).queries
    join = compile_query(query.plan).input.input
    assert isinstance(join, ph.Join)
    return join


def measured(rows: tuple[float, float, float], meets: tuple[float, float]) -> Estimates:
    """A chain A - B - C: `meets` are partners in B, of a tuple of A and of one of C."""
    a_in_b, c_in_b = meets
    b_in_a, b_in_c = a_in_b * rows[0] / rows[1], c_in_b * rows[2] / rows[1]
    known = Estimates(list(rows), span=SPAN, ticks=1)
    ways = {
        (0, (0,), 1): a_in_b,
        (0, (0, 1), 2): b_in_c,
        (1, (1,), 0): b_in_a,
        (1, (1,), 2): b_in_c,
        (1, (0, 1), 2): b_in_c,
        (1, (1, 2), 0): b_in_a,
        (2, (2,), 1): c_in_b,
        (2, (1, 2), 0): b_in_a,
    }
    known.fanouts = {probe_name(s, bound, (t,)): f for (s, bound, t), f in ways.items()}
    known.tried(known.fanouts)
    return known


def look(known: Estimates, at: int = 0, **of: object) -> Look:
    plain = Look(at, 1, known, {}, (), frozenset(), 1 << 40, 1)
    return replace(plain, **of)  # type: ignore[arg-type]


PAYS = measured((300, 300, 10_000), (0.05, 10.0))  # C is fast, finds many, and few of them are in A
COSTS = measured((5_000, 5_000, 300), (10.0, 0.3))


def test_an_intermediate_that_is_probed_often_and_built_cheaply_is_kept() -> None:
    decision = Adaptive().decide(join_of(), MJOIN, look(PAYS))
    assert decision.shape == AB
    assert "ms a tick expected instead of" in decision.why


def test_one_that_is_built_more_often_than_probed_is_dropped() -> None:
    assert (0, 1) not in Adaptive().decide(join_of(), AB, look(COSTS)).shape


def test_one_look_is_not_enough() -> None:
    first = Adaptive().decide(join_of(), MJOIN, look(PAYS, streak=0))
    assert (first.shape, first.streak) == (MJOIN, 1)


def test_what_does_not_fit_is_not_kept() -> None:
    assert Adaptive().decide(join_of(), MJOIN, look(PAYS, room=10.0)).shape == MJOIN
    refused = frozenset({(0, 1)})
    assert Adaptive().decide(join_of(), MJOIN, look(PAYS, refused=refused)).shape != AB


def test_what_lasts_for_ever_is_not_kept() -> None:
    endless = join_of("A [Range Unbounded], B [Range Unbounded], C [Range 999]")
    assert Adaptive().decide(endless, MJOIN, look(PAYS)).shape != AB


@pytest.mark.parametrize("seed", range(20))
def test_with_steady_statistics_no_shape_changes_twice_in_ten_windows(seed: int) -> None:
    drawn = random.Random(seed)
    rows = tuple(drawn.choice([50.0, 300.0, 1_000.0, 10_000.0]) for _ in range(3))
    meets = tuple(drawn.choice([0.05, 0.3, 1.0, 3.0, 10.0]) for _ in range(2))
    steady = measured(rows, meets)  # type: ignore[arg-type]
    op, policy, now, streak = join_of(), Adaptive(), MJOIN, 0
    changes: list[int] = []
    for at in range(0, 40 * WINDOW, SPAN):
        noisy = replace(
            steady,
            rows=[r * drawn.uniform(0.95, 1.05) for r in rows],
            fanouts={n: f * drawn.uniform(0.95, 1.05) for n, f in steady.fanouts.items()},
        )
        seen = look(noisy, at, changes=tuple(changes), streak=streak)
        decision = policy.decide(op, now, seen)
        if decision.shape != now:
            changes.append(at)
        now, streak = decision.shape, decision.streak
    gaps = [b - a for a, b in pairwise(changes)]
    assert all(gap > WINDOWS * WINDOW for gap in gaps), changes


def test_shapes_are_nested_and_connected_by_keys() -> None:
    texts = {shape_text(s, "ABC") for s in shapes_of(join_of())}
    assert texts == {"(A B C)", "((A B) C)", "((B C) A)"}  # A and C have no key in common
    of_four = join_of("A [Range 999], B [Range 999], C [Range 999], D [Range 999]")
    assert {shape_text(s, "ABCD") for s in shapes_of(of_four)} == {
        "(A B C D)",
        "((A B) C D)",
        "((B C) A D)",
        "((C D) A B)",
        "((A B C) D)",
        "((B C D) A)",
        "(((A B) C) D)",
        "(((B C) A) D)",
        "(((B C) D) A)",
        "(((C D) B) A)",
    }
