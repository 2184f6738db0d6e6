import pytest

from thalweg.sim.networks import latencies, transit_stub
from thalweg.sim.networks.hosts import Hosts, scattered
from thalweg.sim.networks.topology import BadTopology


@pytest.fixture(scope="module")
def topology():
    return transit_stub.generate(transit_stub.small(80), seed=1)


def test_without_queues_messages_take_the_shortest_delay(topology):
    hosts = Hosts(topology, [40, 70, 3])
    matrix = latencies.between(topology)
    assert not hosts.has_queues
    assert hosts.latency_us(0, 1) == matrix[40, 70]
    assert hosts.arrival_us(5, 2, 1, 10**9) == 5 + matrix[3, 70]


def test_with_queues_size_and_what_was_sent_before_count(topology):
    hosts = Hosts(topology, [40, 70], queues=True)
    empty = hosts.arrival_us(0, 0, 1, 0)
    assert empty == hosts.latency_us(0, 1)
    first = hosts.arrival_us(0, 0, 1, 100_000)
    second = hosts.arrival_us(0, 0, 1, 100_000)
    assert empty < first < second


def test_a_receiving_host_serves_one_message_at_a_time(topology):
    hosts = Hosts(topology, [40, 70], queues=True, service_us=1_000_000)
    arrivals = [hosts.arrival_us(0, 0, 1, 0) for _ in range(3)]
    assert arrivals == [hosts.latency_us(0, 1) + 1_000_000 * i for i in (1, 2, 3)]


def test_scattered_hosts_stand_at_different_stubs(topology):
    hosts = scattered(topology, 30, seed=1)
    assert len(set(hosts.places)) == 30
    assert set(hosts.places) <= set(topology.stubs.tolist())
    assert hosts.places != scattered(topology, 30, seed=2).places


def test_too_many_hosts_are_refused(topology):
    with pytest.raises(BadTopology, match="500 hosts don't fit on 78 stub nodes"):
        scattered(topology, 500, seed=1)
    with pytest.raises(BadTopology, match="two hosts stand at one node"):
        Hosts(topology, [40, 40])
