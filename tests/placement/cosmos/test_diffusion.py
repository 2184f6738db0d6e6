"""Flows of least norm that take away what is too much."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.placement.arrays import floats
from thalweg.placement.cosmos.diffusion import diffusion, excess

loads = st.lists(st.floats(0, 10), min_size=2, max_size=8)


@given(loads, st.floats(0.5, 12))
def test_afterwards_nobody_has_too_much_if_there_is_room(load: list[float], limit: float) -> None:
    limits = np.full(len(load), limit)
    flow = diffusion(excess(floats(load), limits))
    after = np.array(load) - flow.sum(axis=1) + flow.sum(axis=0)
    assert after.sum() == pytest.approx(sum(load))
    if sum(load) <= limits.sum():
        assert (after <= limits + 1e-6).all()
    assert (flow >= 0).all()
    assert not ((flow > 1e-9) & (flow.T > 1e-9)).any()


@given(loads, st.floats(0.5, 12))
def test_who_keeps_to_the_limit_sends_nothing_of_its_own(load: list[float], limit: float) -> None:
    surplus = excess(floats(load), np.full(len(load), limit))
    assert ((surplus > 0) <= (np.array(load) > limit)).all()
    assert surplus.sum() == pytest.approx(0, abs=1e-6)


def test_the_norm_is_least() -> None:
    """The pseudo-inverse of the incidence matrix gives the flow of least norm over all pairs."""
    surplus = floats([4.0, -1.0, -3.0, 0.0])
    pairs = [(i, j) for i in range(4) for j in range(i)]
    incidence = np.zeros((4, len(pairs)))
    for number, (i, j) in enumerate(pairs):
        incidence[i, number], incidence[j, number] = 1, -1
    least = np.linalg.pinv(incidence) @ surplus
    assert float((diffusion(surplus) ** 2).sum()) == pytest.approx(float(least @ least))


def test_balanced_loads_need_no_flow() -> None:
    assert (diffusion(excess(floats([1.0, 2.0]), floats([2.0, 2.0]))) == 0).all()
