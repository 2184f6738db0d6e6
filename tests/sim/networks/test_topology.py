import numpy as np
import pytest

from thalweg.sim.networks.topology import BadTopology, Topology


def topology(links, nodes=4):
    """Links as (a, b, latency, bandwidth)."""
    rows = np.asarray(links, dtype=np.int64).reshape(-1, 4)
    return Topology(
        "t",
        np.zeros(nodes, dtype=bool),
        np.zeros(nodes, dtype=np.int32),
        np.zeros((nodes, 2)),
        rows[:, :2].astype(np.int32),
        rows[:, 2].astype(np.int32),
        rows[:, 3],
    )


LINE = [(0, 1, 5, 10), (1, 2, 7, 10), (2, 3, 9, 10)]


def test_counts_nodes_links_and_stubs():
    line = topology(LINE)
    assert (line.nodes, line.links) == (4, 3)
    assert line.stubs.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ((0, 2, -5, 10), r"link 3 \(0–2\) has a delay of -5 µs"),
        ((0, 2, 0, 10), "has a delay of 0 µs"),
        ((0, 2, 5, 0), "has a bandwidth of 0 bit/s"),
        ((2, 2, 5, 10), "joins a node to itself"),
        ((1, 0, 5, 10), r"link 3 \(1–0\) is listed twice"),
        ((0, 4, 5, 10), "joins a node that is not there; there are 0 to 3"),
        ((-1, 2, 5, 10), "joins a node that is not there"),
    ],
)
def test_a_bad_link_is_named(link, message):
    with pytest.raises(BadTopology, match=message):
        topology([*LINE, link])


def test_what_is_not_connected_names_a_lost_node():
    with pytest.raises(BadTopology, match="2 parts; node 3, for one, can't be reached from node 0"):
        topology(LINE[:2])


def test_arrays_must_fit_each_other():
    good = topology(LINE)
    with pytest.raises(BadTopology, match="latency_us does not fit 4 nodes and 3 links"):
        Topology(
            "t",
            good.is_transit,
            good.domain,
            good.position,
            good.ends,
            good.latency_us[:2],
            good.bandwidth_bps,
        )


def test_no_nodes_are_no_topology():
    with pytest.raises(BadTopology, match="at least one node"):
        topology([], nodes=0)


def test_one_node_alone_is_a_topology():
    assert topology([], nodes=1).links == 0
