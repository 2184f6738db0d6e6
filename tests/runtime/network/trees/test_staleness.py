"""For which share of time a reader had what its stream's home had."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.plan.coherency.fidelity import Seen, fidelity
from thalweg.plan.coherency.tolerance import Deviation, Update
from thalweg.runtime.network.trees.staleness import Clock, Heads, Staleness


def test_while_a_row_is_on_its_way_fidelity_is_lost() -> None:
    staleness = Staleness(0.0)
    staleness.came(2.0, 3.0)
    staleness.came(2.5, 4.0)  # it overlaps: time is lost once
    staleness.came(8.0, 8.5)
    (one,) = staleness.periods(10.0, 10.0, 1)
    assert one.fidelity == pytest.approx(1 - 2.5 / 10)
    assert one.delay_s == pytest.approx(1.0)
    early, late = staleness.periods(10.0, 5.0, 2)
    assert (early.fidelity, late.fidelity) == (pytest.approx(0.6), pytest.approx(0.9))


def test_what_is_awaited_counts_as_lost_until_it_is_here() -> None:
    staleness = Staleness(0.0)
    assert staleness.periods(10.0, 10.0, 1, pending_s=6.0)[0].fidelity == pytest.approx(0.6)
    assert staleness.periods(10.0, 10.0, 1)[0].fidelity == 1.0


def test_before_anything_was_measured_there_is_no_figure() -> None:
    staleness = Staleness(10.0)
    staleness.came(5.0, 12.0)  # of which only the part since then counts
    before, now = staleness.periods(14.0, 4.0, 2)
    assert before.fidelity is None
    assert now.fidelity == pytest.approx(0.5)


def test_clocks_are_compared_by_the_quickest_answer() -> None:
    clock = Clock()
    assert clock.offset_s is None
    clock.heard(10.0, 14.0, 100.0)
    clock.heard(20.0, 20.2, 108.1)
    assert clock.offset_s == pytest.approx(20.1 - 108.1)
    assert clock.error_s == pytest.approx(0.1)


def test_a_home_has_what_is_below_its_head() -> None:
    heads = Heads()
    heads.add([(1.0, 10), (2.0, 20)])
    heads.add([(2.0, 20), (3.0, 15), (4.0, 30)])  # told again, and behind: nothing new
    assert [heads.had(i) for i in (5, 10, 19, 20, 29, 30)] == [1.0, 2.0, 2.0, 4.0, 4.0, None]
    assert heads.since(1.0) == [(2.0, 20), (4.0, 30)]


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), min_size=1, max_size=12))
def test_it_is_the_fidelity_that_the_source_defines(steps: list[tuple[int, int]]) -> None:
    """Values that each differ by more than is tolerated, and come one after the other."""
    source, seen, staleness = [], [], Staleness(0.0)
    at = came = 0
    for number, (later, delay) in enumerate(steps):
        at += later
        came = max(came + 1, at + delay)
        update = Update(number, at, number)
        source.append(update)
        seen.append(Seen(came, update))
        staleness.came(float(at), float(came))
    end = came + 7
    measured = staleness.periods(float(end), float(end), 1)[0].fidelity
    assert measured == pytest.approx(fidelity(Deviation(0.5), source, seen, 0, end))
