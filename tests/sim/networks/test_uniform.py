"""The plainest network."""

import pytest

from thalweg.sim.networks.uniform import UniformNetwork


def test_everyone_is_equally_far_but_oneself():
    network = UniformNetwork(700)
    assert network.latency_us(0, 1) == network.latency_us(9, 3) == 700
    assert network.latency_us(4, 4) == 0
    assert network.arrival_us(50, 0, 1, 10_000) == 750
    assert not network.has_queues


def test_a_negative_latency_is_refused():
    with pytest.raises(ValueError, match="-1 µs: it can't be negative"):
        UniformNetwork(-1)
