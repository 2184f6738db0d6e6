"""The protocols of `overlay`, unchanged, between live nodes: what the simulator promises."""

import pytest
from tests.runtime.cluster import QUICK, Cluster
from tests.runtime.waiting import eventually

from thalweg.overlay.catalogue import Catalogue, CatalogueSettings, Put, Refused
from thalweg.overlay.catalogue import Drop as Undefine
from thalweg.overlay.chord.messages import Create, Found, Lookup
from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.chord.settings import Settings as ChordSettings
from thalweg.overlay.coordinators.tree import CoordinatorTree, TreeSettings
from thalweg.overlay.gossip import Gossip, GossipTimes
from thalweg.overlay.membership import Membership
from thalweg.overlay.prefix.protocol import Prefix, PrefixSettings
from thalweg.overlay.query_spreading import Drop, QuerySpreading, Submit
from thalweg.overlay.ring import distance
from thalweg.overlay.routing import id_of
from thalweg.overlay.stack import Stack
from thalweg.overlay.view import LEFT

CHORD = ChordSettings(
    stabilise_every_us=60_000,
    fix_finger_every_us=10_000,
    find_self_every_us=200_000,
    answer_within_us=150_000,
    alone_after_us=2_000_000,
)
PREFIX = PrefixSettings(greet_every_us=60_000, answer_within_us=150_000, ignore_for_us=500_000)
GOSSIP = GossipTimes(floor_us=100_000, ceiling_us=400_000, settle_us=60_000)
TREE = TreeSettings(k=2, heartbeat_us=60_000)


def members():
    return Membership(QUICK)


def on_chord():
    membership = members()
    return Stack([membership, Chord(membership, CHORD)])


def gossip_on(kind):
    def build():
        membership = members()
        routing = Chord(membership, CHORD) if kind == "chord" else Prefix(membership, PREFIX)
        spreading = QuerySpreading(routing)
        return Stack([membership, routing, spreading, Gossip(routing, spreading, GOSSIP)])

    return build


def ring_is_right(cluster):
    ring = sorted(cluster.addresses, key=id_of)

    def neighbours(chord):
        return list(chord.table.successors), chord.table.predecessor

    for node in cluster:
        at = ring.index(node.address)
        order = ring[at + 1 :] + ring[:at]
        if node.read("chord", neighbours) != (order[: CHORD.successors], order[-1]):
            return False
    return True


def tables(cluster):
    return [
        node.read("query-spreading", lambda s: sorted((r.id, r.dropped) for r in s.table))
        for node in cluster
    ]


def test_members_find_each_other_and_notice_who_stops_leaves_and_returns(tmp_path):
    with Cluster(tmp_path, lambda: Stack([members()]), 5) as cluster:
        cluster.wait_until_all_know_all()
        stopped, left = cluster[1], cluster[2]
        cluster.stop(stopped)
        cluster.wait_until_all_know_all()
        cluster.stop(left, leave=True)
        cluster.wait_until_all_know_all()
        for node in cluster:
            word = node.read("membership", lambda m: m.view.words[left.address])
            assert word.status == LEFT
        cluster.restart(stopped)
        cluster.restart(left)
        cluster.wait_until_all_know_all()


def test_both_sides_of_a_partition_find_each_other_again(tmp_path):
    with Cluster(tmp_path, lambda: Stack([members()]), 4, relays=True) as cluster:
        cluster.wait_until_all_know_all()
        one, other = cluster.nodes[:2], cluster.nodes[2:]
        sides = [{n.address for n in side} for side in (one, other)]
        cluster.mesh.partition(*sides)
        for side, addresses in zip((one, other), sides, strict=True):
            eventually(lambda s=side, a=addresses: all(n.up() == a - {n.address} for n in s))
        cluster.mesh.heal()
        cluster.wait_until_all_know_all()


def test_members_on_slow_links_know_each_other_all_the_same(tmp_path):
    with Cluster(tmp_path, lambda: Stack([members()]), 3, relays=True) as cluster:
        cluster.wait_until_all_know_all()
        for relay in list(cluster.mesh.relays.values()):
            relay.delay(0.02)
        for relay in list(cluster.mesh.relays.values()):
            relay.hang_up()  # whatever was under way is lost
        cluster.wait_until_all_know_all()


def test_a_ring_forms_answers_and_closes_again(tmp_path):
    with Cluster(tmp_path, on_chord, 6, listen_to=("chord",)) as cluster:
        cluster[0].driver.call("chord", Create()).result(5)
        eventually(lambda: ring_is_right(cluster))
        key = id_of("a key")
        owner = min(cluster.addresses, key=lambda a: distance(key, id_of(a)))
        for node in cluster:
            node.driver.call("chord", Lookup(key, "mine"))
            eventually(lambda n=node: any(isinstance(v, Found) for _, v in n.heard))
            found = next(v for _, v in node.heard if isinstance(v, Found))
            assert found.owners[0] == owner
        cluster.stop(cluster[3])
        eventually(lambda: ring_is_right(cluster))
        cluster.add()
        eventually(lambda: ring_is_right(cluster))


def test_prefix_tables_fill_and_routes_agree(tmp_path):
    def build():
        membership = members()
        return Stack([membership, Prefix(membership, PREFIX)])

    keys = [id_of(f"key {i}") for i in range(20)]

    def owners(cluster):
        hops = {
            n.address: n.read("prefix", lambda p: {k: p.next_hop(k) for k in keys}) for n in cluster
        }

        def owner(start, key):
            at = start
            for _ in range(10):
                if at not in hops or hops[at][key] is None:
                    return at
                at = hops[at][key]
            return None

        return [{owner(n.address, k) for n in cluster} for k in keys]

    with Cluster(tmp_path, build, 6) as cluster:
        eventually(lambda: all(len(o) == 1 for o in owners(cluster)))
        cluster.stop(cluster[2])
        eventually(
            lambda: all(len(o) == 1 and o <= cluster.addresses for o in owners(cluster)),
        )


@pytest.mark.parametrize("kind", ["chord", "prefix"])
def test_queries_spread_and_gossip_repairs_what_a_failure_left_out(tmp_path, kind):
    with Cluster(tmp_path, gossip_on(kind), 5) as cluster:
        if kind == "chord":
            cluster[0].driver.call("chord", Create()).result(5)
            eventually(lambda: ring_is_right(cluster))
        cluster.wait_until_all_know_all()
        for i, node in enumerate(cluster):
            node.driver.call("query-spreading", Submit(f"q{i}", "SELECT 1")).result(5)
        everything = [(f"q{i}", False) for i in range(5)]
        eventually(lambda: tables(cluster) == [everything] * 5)
        absent = cluster[4]
        cluster.stop(absent)
        cluster[0].driver.call("query-spreading", Drop("q1")).result(5)
        cluster[1].driver.call("query-spreading", Submit("q5", "SELECT 2")).result(5)
        cluster.restart(absent)  # with q1 on its disk, and without q5
        final = sorted([("q5", False), *((q, q == "q1") for q, _ in everything)])
        eventually(lambda: tables(cluster) == [final] * 5)


def test_coordinators_form_one_tree_and_mend_it(tmp_path):
    def build():
        membership = members()
        return Stack([membership, CoordinatorTree(membership, TREE)])

    def is_one_tree(cluster):
        found = {
            n.address: n.read("coordinators", lambda t: (t.place.parent, t.place.height))
            for n in cluster
        }
        roots = [a for a, (parent, _) in found.items() if parent is None]
        if len(roots) != 1 or any(p not in found for p, _ in found.values() if p is not None):
            return False
        return all(found[p][1] > height for p, height in found.values() if p is not None)

    with Cluster(tmp_path, build, 7) as cluster:
        eventually(lambda: is_one_tree(cluster))
        (root,) = (n for n in cluster if n.read("coordinators", lambda t: t.place.parent) is None)
        cluster.stop(root)
        eventually(lambda: is_one_tree(cluster))


def with_catalogue():
    membership = members()
    settings = CatalogueSettings(compare_every_us=150_000, settle_us=50_000)
    return Stack([membership, Catalogue(membership, settings)])


def names(cluster):
    return [
        n.read("catalogue", lambda c: {k: e.text for k, e in c.names().items()}) for n in cluster
    ]


def test_definitions_reach_everybody_and_survive_partitions_and_restarts(tmp_path):
    with Cluster(tmp_path, with_catalogue, 4, relays=True) as cluster:
        cluster.wait_until_all_know_all()
        first = cluster[0]
        (changed,) = first.driver.call("catalogue", Put("bids", "stream", "one")).result(5)
        assert changed.entry.owner == first.address
        eventually(lambda: names(cluster) == [{"bids": "one"}] * 4)

        one, other = cluster.nodes[:2], cluster.nodes[2:]
        cluster.mesh.partition({n.address for n in one}, {n.address for n in other})
        for side in (one, other):
            put = Put("hot", "query", f"at {side[0].address}")
            (answer,) = side[0].driver.call("catalogue", put).result(5)
            assert not isinstance(answer, Refused)
        first.driver.call("catalogue", Undefine("bids")).result(5)
        eventually(lambda: "bids" not in names(one)[1])
        assert "bids" in names(other)[0]
        cluster.mesh.heal()
        eventually(lambda: names(cluster)[1:] == names(cluster)[:-1])
        everything = names(cluster)[0]
        assert set(everything.values()) == {f"at {one[0].address}", f"at {other[0].address}"}
        assert len(everything) == 2
        assert "hot" in everything

        restarted = cluster[3]
        cluster.stop(restarted)
        first.driver.call("catalogue", Put("cold", "view", "two")).result(5)
        cluster.restart(restarted)
        eventually(lambda: names(cluster) == [{**everything, "cold": "two"}] * 4)
