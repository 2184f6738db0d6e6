"""Bits in flight, savings and stretch, by hand."""

from __future__ import annotations

from math import inf

import pytest
from tests.placement.problems import problem_of, two_way
from tests.placement.sand.test_deploying import TWO

from thalweg.placement.deployment import deployment
from thalweg.placement.explain import Plans, explain
from thalweg.placement.network_use import NetworkUse, bits_in_flight, query_use, use_text

# The join runs at h0 (b comes 5 ms from h1), its result goes 5 ms to h2, where q0 is served.
AT_SOURCE = deployment(2, runs=[(0, 0)], sends=[(1, 0, 1), (0, 2, 2)], serves={0: 2})


def use_of_q0() -> NetworkUse:
    plan = Plans(problem_of(TWO), AT_SOURCE).of(0)
    assert plan is not None
    use = query_use(problem_of(TWO), plan)
    assert use is not None
    return use


def test_a_plan_is_measured_beside_the_straight_ways() -> None:
    use = use_of_q0()
    assert use.bits == pytest.approx((30 * 5 + 8 * 5) / 1000)
    assert use.straight_bits == pytest.approx((40 * 5 + 30 * 5) / 1000)
    assert (use.delay_ms, use.straight_ms) == (10, 5)
    assert (use.saving, use.stretch) == (pytest.approx(1 - 190 / 350), 2)


def test_the_whole_deployment_counts_each_send_once() -> None:
    assert bits_in_flight(problem_of(TWO), AT_SOURCE) == pytest.approx(0.19)
    assert bits_in_flight(two_way(), AT_SOURCE) == 0


def test_what_the_overlay_brings_counts_straight_from_the_nearest_who_has_it() -> None:
    brought = deployment(2, runs=[(0, 0)], wants=[(0, 1), (2, 2)], serves={0: 2})
    assert bits_in_flight(problem_of(TWO), brought) == pytest.approx(0.19)


def test_without_latencies_there_is_nothing_to_measure() -> None:
    plan = Plans(two_way(), AT_SOURCE).of(0)
    assert plan is not None
    assert query_use(two_way(), plan) is None


def test_what_the_overlay_brings_comes_by_the_shortest_way() -> None:
    brought = deployment(2, runs=[(0, 0)], wants=[(0, 1), (2, 2)], serves={0: 2})
    plan = Plans(problem_of(TWO), brought).of(0)
    assert plan is not None
    assert query_use(problem_of(TWO), plan) == use_of_q0()


def test_a_query_at_its_source_is_not_stretched() -> None:
    assert NetworkUse(0, 0, 0, 0).stretch == 1
    assert NetworkUse(0, 0, 0, 0).saving == 0
    assert NetworkUse(1, 0, 4, 0).stretch == inf


def test_plans_tell_what_each_way_takes() -> None:
    assert explain(problem_of(TWO), AT_SOURCE, 0).splitlines() == [
        "q0: ab from h2",
        "└─ relay, at h2",
        "   └─ a⋈b, at h0, 0 CPU, sends ab to h2, 8 bps × 5 ms = 0.04 bit",
        "      ├─ a, base stream at h0",
        "      └─ b, base stream at h1, sends b to h0, 30 bps × 5 ms = 0.15 bit",
    ]
    assert use_text(use_of_q0(), 12) == (
        "0.19 bit in flight, 0.35 bit with everything at the proxy: saves 46%; "
        "10 ms, 2.00 times the straight 5 ms, its bound 12 ms"
    )
