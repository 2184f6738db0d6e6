"""Spreading along the ring: every node once, however the scope is cut."""

from hypothesis import given
from hypothesis import strategies as st

from thalweg.overlay.ring import distance, distance_to_limit, ring_parts
from thalweg.overlay.routing import IDS

RINGS = st.sets(st.integers(0, IDS - 1), min_size=1, max_size=40)


def test_distances_go_clockwise():
    assert distance(5, 9) == 4
    assert distance(9, 5) == IDS - 4
    assert distance_to_limit(5, None) == distance_to_limit(5, 5) == IDS
    assert distance_to_limit(5, 9) == 4


def fingers_of(own, ring):
    """As Chord has them when all is well: the first node at or after own + 2^i."""
    owners = (min(ring, key=lambda n: distance((own + (1 << i)) % IDS, n)) for i in range(64))
    return [(n, str(n)) for n in owners]


def spread(ring, root):
    """All messages of a query submitted at `root`: who was reached, and how deep."""
    reached, to_do = [], [(root, None, 0)]
    while to_do:
        own, limit, depth = to_do.pop()
        for address, end in ring_parts(own, fingers_of(own, ring), limit):
            reached.append((int(address), depth + 1))
            to_do.append((int(address), end, depth + 1))
    return reached


@given(RINGS)
def test_every_other_node_is_reached_once_and_soon(ring):
    root = min(ring)
    reached = spread(ring, root)
    assert sorted(n for n, _ in reached) == sorted(ring - {root})
    assert max((depth for _, depth in reached), default=0) <= 64


def test_the_tree_is_logarithmic():
    ring = {i * (IDS // 256) for i in range(256)}
    assert max(depth for _, depth in spread(ring, 0)) == 8


def test_the_eight_node_ring_of_the_source():
    """DHTJoin, figure 4.2: node 0 sends to 1, 2 and 4; 4 sends to 5 and 6."""
    eighth = IDS // 8
    ring = {i * eighth for i in range(8)}

    def sent_by(node, limit):
        parts = ring_parts(node * eighth, fingers_of(node * eighth, ring), limit)
        return [(int(a) // eighth, end // eighth) for a, end in parts]

    assert sent_by(0, None) == [(1, 2), (2, 4), (4, 0)]
    assert sent_by(4, 0) == [(5, 6), (6, 0)]
    assert sent_by(5, 6 * eighth) == []


def test_nothing_is_sent_to_oneself():
    """A finger that wraps round the whole ring is the node itself."""
    assert ring_parts(7, [(7, "me"), (9, "b")], None) == [("b", 7)]
