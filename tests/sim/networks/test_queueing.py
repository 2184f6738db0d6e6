import numpy as np
import pytest

from thalweg.sim.networks import latencies, transit_stub
from thalweg.sim.networks.queueing import Hop, Line, Links, Nodes, expected_wait_us
from thalweg.sim.networks.topology import Topology


@pytest.fixture
def line():
    """0 –(100 µs, 8 Mbit/s: a byte a µs)– 1 –(50 µs, 4 Mbit/s)– 2"""
    return Topology(
        "line",
        np.zeros(3, dtype=bool),
        np.zeros(3, dtype=np.int32),
        np.zeros((3, 2)),
        np.asarray([[0, 1], [1, 2]], dtype=np.int32),
        np.asarray([100, 50], dtype=np.int32),
        np.asarray([8_000_000, 4_000_000]),
    )


def test_a_message_is_sent_then_travels(line):
    links = Links(line)
    assert links.hop(1_000, 0, 2, 500) == Hop(1, 1_000 + 500 + 100)
    assert links.hop(1_600, 1, 2, 500) == Hop(2, 1_600 + 1_000 + 50)


def test_a_message_waits_for_the_one_before_it(line):
    links = Links(line)
    links.hop(0, 0, 1, 500)
    assert links.hop(100, 0, 1, 500) == Hop(1, 1_100)
    assert links.hop(5_000, 0, 1, 1) == Hop(1, 5_101)  # the line is free again


def test_directions_of_a_link_do_not_wait_for_each_other(line):
    links = Links(line)
    links.hop(0, 0, 1, 500)
    assert links.hop(0, 1, 0, 500) == Hop(0, 600)


def test_an_empty_network_delivers_after_the_shortest_delay():
    t = transit_stub.generate(transit_stub.small(80), seed=1)
    matrix = latencies.between(t)
    for source, target in ((20, 70), (70, 20), (0, 55)):
        links, now, at = Links(t), 0, source
        while at != target:
            hop = links.hop(now, at, target, 0)
            now, at = hop.arrives_us, hop.node
        assert now == matrix[source, target]


def test_nodes_serve_one_at_a_time():
    nodes = Nodes(np.asarray([10, 0], dtype=np.int32))
    assert [nodes.done(0, 0), nodes.done(5, 0), nodes.done(100, 0)] == [10, 20, 110]
    assert nodes.done(7, 1) == 7
    assert nodes.lines[0].busy_us == 30


def test_the_wait_at_a_random_load_is_that_of_queueing_theory():
    """Poisson arrivals, exponential service: M/M/1 (COSMOS 4.2.1)."""
    rng = np.random.default_rng(1)
    load, service_us = 0.7, 1_000
    line, now, waited, count = Line(), 0, 0, 200_000
    for gap, service in zip(
        rng.exponential(service_us / load, count), rng.exponential(service_us, count), strict=True
    ):
        now += int(gap)
        waited += line.serve(now, int(service)) - now - int(service)
    assert waited / count == pytest.approx(expected_wait_us(load, service_us), rel=0.05)


def test_an_overloaded_server_waits_forever():
    assert expected_wait_us(1.0, 5) == float("inf")
    assert expected_wait_us(2.0, 5) == float("inf")
    assert expected_wait_us(0.5, 10) == 10


def test_nonsense_is_refused(line):
    with pytest.raises(ValueError, match="node 1 takes -3 µs a message"):
        Nodes(np.asarray([1, -3], dtype=np.int32))
    with pytest.raises(ValueError, match="no negative time"):
        Line().serve(0, -1)
    with pytest.raises(ValueError, match="no link to itself"):
        Links(line).hop(0, 1, 1, 5)
    with pytest.raises(ValueError, match="can't be negative"):
        expected_wait_us(-1, 5)
