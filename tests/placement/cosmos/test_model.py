"""A network or a graph that makes no sense can't be built, and the error says what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from thalweg.placement.arrays import floats, ints
from thalweg.placement.cosmos.model import BadModel, Balance, Network, Substreams, Vertices


def network(latency: np.ndarray, capability: list[float]) -> Network:
    return Network(floats(latency), floats(np.ones((1, len(capability)))), floats(capability))


def test_an_unreachable_provider_is_named() -> None:
    latency = np.ones((3, 3))
    latency[1, 2] = np.inf
    with pytest.raises(BadModel, match=r"latency_ms\[1\]\[2\].*can't be reached"):
        network(latency, [1, 1, 1])


def test_somebody_must_be_able_to_run_queries() -> None:
    with pytest.raises(BadModel, match="no provider has any capability"):
        network(np.ones((2, 2)), [0, 0])


def test_latencies_fit_the_providers() -> None:
    with pytest.raises(BadModel, match="don't fit 3 providers"):
        network(np.ones((2, 2)), [1, 1, 1])


def test_rates_are_numbers() -> None:
    with pytest.raises(BadModel, match=r"rate_bps\[1\]"):
        Substreams(floats([1.0, np.nan]), ints([0, 0]))


def test_weights_are_not_negative() -> None:
    rows = csr_array(np.ones((2, 1), np.float32))
    with pytest.raises(BadModel, match=r"weight\[1\]"):
        Vertices(rows, rows, floats([1.0, -1.0]), floats([0.0, 0.0]))


def test_limits_are_shares_of_the_load_by_capability() -> None:
    limits = Balance(0.1).limits(floats([2.0, 4.0]), floats([1.0, 2.0]))
    assert limits.tolist() == pytest.approx([2.2, 4.4])
    with pytest.raises(BadModel):
        Balance(-0.1)
