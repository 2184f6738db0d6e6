from itertools import pairwise

import numpy as np
import pytest

from thalweg.sim.networks import latencies, transit_stub
from thalweg.sim.networks.topology import BadTopology, Topology


def floyd_warshall(t):
    far = np.full((t.nodes, t.nodes), 1 << 40, dtype=np.int64)
    np.fill_diagonal(far, 0)
    for (a, b), delay in zip(t.ends, t.latency_us, strict=True):
        far[a, b] = far[b, a] = delay
    for k in range(t.nodes):
        far = np.minimum(far, far[:, [k]] + far[[k], :])
    return far


@pytest.fixture(scope="module")
def small():
    return transit_stub.generate(transit_stub.small(200), seed=3)


def test_shortest_paths_are_those_of_another_algorithm(small):
    assert np.array_equal(latencies.between(small), floyd_warshall(small))


def test_delays_are_whole_symmetric_and_zero_to_oneself(small):
    matrix = latencies.between(small)
    assert matrix.dtype == np.int32
    assert np.array_equal(matrix, matrix.T)
    assert not matrix.diagonal().any()


def test_among_chosen_nodes_in_their_order(small):
    chosen = np.asarray([150, 3, 77], dtype=np.int32)
    whole = latencies.between(small)
    assert np.array_equal(latencies.between(small, chosen), whole[np.ix_(chosen, chosen)])


def test_a_path_adds_up_to_its_delay(small):
    delay_of = {}
    for (a, b), delay in zip(small.ends.tolist(), small.latency_us.tolist(), strict=True):
        delay_of[a, b] = delay_of[b, a] = delay
    before = latencies.paths_from(small, 10)
    matrix = latencies.between(small)
    for to in range(small.nodes):
        nodes = latencies.path(before, to)
        assert nodes[0] == 10
        assert nodes[-1] == to
        assert sum(delay_of[ab] for ab in pairwise(nodes)) == matrix[10, to]


def test_an_unknown_node_is_named(small):
    with pytest.raises(BadTopology, match="there is no node 200; there are 0 to 199"):
        latencies.paths_from(small, 200)


def test_a_path_beyond_the_range_of_the_matrix_is_refused():
    ends = np.asarray([[0, 1], [1, 2]], dtype=np.int32)
    slow = Topology(
        "slow",
        np.zeros(3, dtype=bool),
        np.zeros(3, dtype=np.int32),
        np.zeros((3, 2)),
        ends,
        np.asarray([2**30 * 3 // 2] * 2, dtype=np.int32),
        np.asarray([1, 1]),
    )
    with pytest.raises(BadTopology, match="more than 35 minutes"):
        latencies.between(slow)
