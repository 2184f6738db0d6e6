"""An owner's claim: what it rests on, and what it no longer rests on once it has begun anew."""

from types import SimpleNamespace

import pytest

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.membership import Membership
from thalweg.overlay.p2p.dataflow import Dataflow
from thalweg.overlay.p2p.index_messages import Claim, Item, Promised, Put, Refused
from thalweg.overlay.p2p.owner import Owner
from thalweg.overlay.p2p.peer import Peer, PeerSettings
from thalweg.overlay.p2p.planning import plan_joins
from thalweg.overlay.p2p.query import Between, JoinQuery, Leaf
from thalweg.overlay.p2p.stream_messages import AskStream, Status
from thalweg.overlay.p2p.tuples import Tup, inside
from thalweg.overlay.protocol import Send, Tell

ALL = ((0, 15),)
LATER_US = 10_000_000


class Node:
    """An owner of all buckets, of a query that joins X and Y, each with a source at another."""

    def __init__(self, monkeypatch):
        membership = Membership()
        self.peer = Peer(Chord(membership), membership, PeerSettings(buckets=16))
        self.peer.address = "o"
        leaves = (Leaf("X", 5), Leaf("Y", 5))
        joins, rest = plan_joins(leaves, [Between(0, 0, "=", 1, 0)], {})
        query = JoinQuery("q", "n1", leaves, joins, ((0, 0), (1, 0)), rest)
        self.peer.dataflow = Dataflow([query])
        monkeypatch.setattr(Peer, "owned", lambda _: ALL)
        monkeypatch.setattr(Peer, "owns", lambda _, bucket: inside(bucket, ALL))
        self.owner = Owner(self.peer, SimpleNamespace(get=lambda _: query))
        self.owner.start("o#1.", 0)
        self.learn("X", 1, ("x", 1, "nx"))
        self.learn("Y", 1, ("y", 1, "ny"))
        self.now_us = 0

    def learn(self, stream, version, *sources):
        self.peer.learn(Status(stream, 0, version, sources, {}, {}, {}))

    @property
    def claims(self):
        return self.owner.claims

    @property
    def holding(self):
        (holding,) = self.claims.holdings
        return holding

    def press(self):
        self.now_us += LATER_US
        return self.claims.press(self.now_us, self.holding)

    def promise(self, *sources, items=(), **changed):
        holding = self.holding
        told = {"number": holding.number, "versions": dict(holding.versions)} | changed
        message = Promised(ALL, holding.life, told["number"], 0, sources, told["versions"], items)
        return self.claims.promised(self.now_us, message)

    def put(self, stream, seq):
        """A tuple comes, and is at work."""
        item = Item(seq, f"{stream}.0", 3, (Tup(stream, stream.lower(), seq, 2, (7,)),))
        versions = {s: status.list_version for s, status in self.peer.statuses.items()}
        self.owner.put(self.now_us, Put(f"n{stream.lower()}", (item,), ("q",), versions, {}))

    def rows(self):
        """What was found since this was last asked, and under which token."""
        told = self.owner.found.flush(self.peer.dataflow.queries)
        return [(e.request.token, len(e.request.rows)) for e in told if isinstance(e, Tell)]

    def acknowledged(self):
        return [n for _, done in self.owner.flush_done() for n, _ in done.items]


@pytest.fixture
def node(monkeypatch):
    return Node(monkeypatch)


def _asked(effects):
    return {e.to: e.message for e in effects if isinstance(e, Send) and type(e.message) is Claim}


def test_who_has_lost_a_bucket_to_another_counts_on_nothing_that_it_was_sent_before(node):
    """In between the other may have acknowledged what this one never saw; and an answer that gets
    lost must come again in full."""
    node.claims.begin(3)
    node.press()
    node.promise(("x", 1))
    node.promise(("y", 1))
    assert node.claims.is_complete(node.holding)
    node.claims.refused(node.now_us, Refused(node.holding.life, 2, {}))
    assert not node.claims.is_complete(node.holding)
    claims = _asked(node.press())
    assert {a: (c.number, c.have) for a, c in claims.items()} == {"nx": (3, ()), "ny": (3, ())}


def test_a_claim_says_no_version_of_a_list_that_its_owner_has_not_seen(node):
    """As a source it may have been told that there is a later list. Whoever is new on it would be
    asked by nobody, and the claim be complete without."""
    node.claims.begin(3)
    node.peer.claimed_versions["Y"] = 2
    effects = node.press()
    assert _asked(effects) == {}
    assert [e.request.stream for e in effects if isinstance(e.request, AskStream)] == ["Y"]
    node.learn("Y", 2, ("y", 1, "ny"), ("y2", 1, "nz"))
    claims = _asked(node.press())
    assert set(claims) == {"nx", "ny", "nz"}
    assert all(c.versions == {"X": 1, "Y": 2} for c in claims.values())


def test_what_was_joined_under_a_claim_that_began_anew_since_is_joined_again(node):
    """Its rows were long under way. What sources have sent meanwhile was stored and not joined; the
    claim is complete again, but this tuple has not met it."""
    node.claims.begin(3)
    node.press()
    node.promise(("x", 1))
    node.promise(("y", 1))
    node.put("Y", 1)
    node.put("X", 1)
    ((token, count),) = node.rows()
    assert count == 1
    node.claims.refused(node.now_us, Refused(node.holding.life, 2, {}))
    node.press()
    node.promise(("x", 1))
    missed = Item(0, "Y.0", 3, (Tup("Y", "y", 2, 2, (7,)),))
    node.promise(("y", 1), items=(missed,))
    assert node.claims.is_complete(node.holding)
    node.acknowledged()
    node.owner.rows_done(token)
    assert node.acknowledged() == []
    ((token, count),) = node.rows()
    assert count == 2
    node.owner.rows_done(token)
    assert node.acknowledged() == [1]
