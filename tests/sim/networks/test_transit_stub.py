import numpy as np
import pytest

from thalweg.sim.networks import latencies, transit_stub
from thalweg.sim.networks.transit_stub import COSMOS_1500, SAND, TransitStub, generate


def test_sand_has_fourteen_domains_and_half_a_second_at_the_longest():
    t = generate(SAND, seed=1)
    assert len(np.unique(t.domain[t.is_transit])) == 14
    longest = latencies.diameter(latencies.between(t, t.stubs))
    assert longest == pytest.approx(500_000, abs=20)  # rounding of some ten links


def test_cosmos_has_1500_nodes_at_20_ms_on_average():
    t = generate(COSMOS_1500, seed=2)
    assert t.nodes == 1_500
    assert latencies.mean(latencies.between(t, t.stubs)) == pytest.approx(20_000, abs=5)


def test_the_large_preset_has_4096_nodes():
    what = transit_stub.PRESETS["cosmos-4096"]
    assert what.nodes == 4_096
    assert what.transits + what.stub_domains < what.nodes


@pytest.mark.parametrize("seed", range(5))
def test_any_seed_gives_a_transit_stub_network(seed):
    what = transit_stub.small(120)
    t = generate(what, seed)
    assert t.nodes == 120  # and it is connected, or it would not have been built
    assert t.is_transit.sum() == what.transits
    a, b = t.ends.T
    # Without extra links a stub domain has one way out: to its transit node.
    leaves = (t.domain[a] != t.domain[b]) & ~(t.is_transit[a] & t.is_transit[b])
    assert leaves.sum() == what.stub_domains
    assert (t.is_transit[a] ^ t.is_transit[b])[leaves].all()


def test_stub_domains_vary_in_size():
    t = generate(SAND, seed=1)
    sizes = np.bincount(t.domain[~t.is_transit])[SAND.transit_domains :]
    assert sizes.min() >= 1
    assert sizes.max() > 1.5 * sizes.min()
    assert len(sizes) == SAND.stub_domains


def test_the_same_seed_gives_the_same_network_and_another_another():
    first, again, other = (generate(transit_stub.small(60), s) for s in (7, 7, 8))
    assert np.array_equal(first.ends, again.ends)
    assert np.array_equal(first.latency_us, again.latency_us)
    assert not np.array_equal(first.latency_us[:20], other.latency_us[:20])


def test_stubs_of_one_domain_are_nearer_than_those_of_others():
    t = generate(SAND, seed=1)
    matrix = latencies.between(t, t.stubs)
    same = t.domain[t.stubs][:, None] == t.domain[t.stubs][None, :]
    assert matrix[same].mean() * 4 < matrix[~same].mean()


def test_extra_links_join_stubs_to_what_is_not_theirs():
    plain = TransitStub("p", 100, 2, 2, 3, longest_ms=100)
    extra = TransitStub("p", 100, 2, 2, 3, longest_ms=100, extra_links=8)
    assert generate(extra, 1).links == generate(plain, 1).links + 8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": 20}, "20 nodes are too few for 4 transit nodes and 24 stub domains"),
        ({"longest_ms": -1.0}, "a delay is greater than zero"),
        ({"longest_ms": None}, "longest_ms or mean_ms"),
        ({"mean_ms": 3.0}, "longest_ms or mean_ms"),
        ({"transit_domains": 0}, "at least one transit domain"),
        ({"stub_link_probability": 1.5}, "stub_link_probability is 1.5"),
        ({"extra_links": -1}, "-1 extra links"),
    ],
)
def test_what_can_not_be_made_is_refused(changes, message):
    fields = {
        "nodes": 100,
        "transit_domains": 2,
        "transit_nodes": 2,
        "stubs_per_transit_node": 6,
        "longest_ms": 10.0,
    }
    with pytest.raises(ValueError, match=message):
        TransitStub("t", **(fields | changes))


def test_an_unknown_preset_lists_the_known_ones():
    with pytest.raises(ValueError, match="no network sandy; there are sand, cosmos-1500"):
        transit_stub.preset("sandy")
    assert transit_stub.preset("sand", longest_ms=100.0).longest_ms == 100.0
