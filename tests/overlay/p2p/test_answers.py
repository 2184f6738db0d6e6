"""Whose acknowledgements count, and what a claim gets."""

import pytest

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.membership import Membership
from thalweg.overlay.p2p.answers import Answers
from thalweg.overlay.p2p.dataflow import Dataflow
from thalweg.overlay.p2p.index_messages import Claim, Promised, Refused
from thalweg.overlay.p2p.peer import Peer, PeerSettings
from thalweg.overlay.p2p.planning import plan_joins
from thalweg.overlay.p2p.query import Between, JoinQuery, Leaf
from thalweg.overlay.p2p.source import Kept, Source
from thalweg.overlay.p2p.sources import Sources
from thalweg.overlay.p2p.tuples import Tup
from thalweg.overlay.protocol import Send
from thalweg.overlay.query_table import QueryTable

ALL = ((0, 15),)


@pytest.fixture
def answers():
    membership = Membership()
    peer = Peer(Chord(membership), membership, PeerSettings(buckets=16))
    leaves = (Leaf("X", 5), Leaf("Y", 5))
    joins, rest = plan_joins(leaves, [Between(0, 0, "=", 1, 0)], {})
    peer.dataflow = Dataflow([JoinQuery("q", "n1", leaves, joins, ((0, 0),), rest)])
    sources = Sources(peer, QueryTable())
    source = sources.sources["s"] = Source("X", "s", is_open=True)
    source.log = {i: Kept(Tup("X", "s", i, i, (i,)), indexed=i < 3) for i in range(4)}
    return Answers(peer, sources)


def _claim(number, life, versions=None, have=()):
    return Claim(ALL, number, life, 0, versions or {}, have)


def _sent(effects):
    return [(e.to, e.message) for e in effects if isinstance(e, Send)]


def test_a_claim_gets_what_is_indexed_and_the_promise(answers):
    ((to, promised),) = _sent(answers.claimed("o1", _claim(1, "o1#a")))
    assert to == "o1"
    assert isinstance(promised, Promised)
    assert [item.parts[0].seq for item in promised.items] == [0, 1, 2]
    assert promised.sources == (("s", 1),)


def test_the_same_life_gets_nothing_twice_and_a_new_one_everything(answers):
    answers.claimed("o1", _claim(1, "o1#a"))
    ((_, again),) = _sent(answers.claimed("o1", _claim(2, "o1#a", have=(("s", 1),))))
    assert again.items == ()
    ((_, other),) = _sent(answers.claimed("o2", _claim(3, "o2#b", have=(("s", 1),))))
    assert len(other.items) == 3  # it was another's in between


def test_a_number_that_is_not_higher_is_refused(answers):
    answers.claimed("o1", _claim(2, "o1#a"))
    ((to, refused),) = _sent(answers.claimed("o2", _claim(2, "o2#b")))
    assert (to, refused) == ("o2", Refused("o2#b", 2, {}))
    assert answers.owner_of(3) == "o1"


def test_who_knows_fewer_sources_than_were_promised_under_is_refused(answers):
    answers.claimed("o1", _claim(1, "o1#a", {"X": 3}))
    ((_, refused),) = _sent(answers.claimed("o2", _claim(9, "o2#b", {"X": 2})))
    assert isinstance(refused, Refused)
    assert refused.versions == {"X": 3}


def test_only_the_owner_that_was_promised_is_believed(answers):
    answers.claimed("o2", _claim(1, "o2#b"))
    peer = answers._peer
    number = peer.enqueue(peer.dataflow.stems["X.0"], (Tup("X", "s", 0, 0, (0,)),), ("s", 0))
    out = peer.outs[number]
    assert answers.misplaced(out, ((3, "o2#b"),)) is None
    told = _sent(answers.misplaced(out, ((3, "o2#b"), (4, "o1#a"))))
    assert told == [("o1", Refused("o1#a", 1, {}))]


def test_a_claim_that_was_overtaken_by_a_later_one_of_its_life_takes_no_promise_back(answers):
    """Else a third with a number in between got the promise here, and was refused elsewhere: two
    owners could each have all promises that it needs, in another order at each source."""
    answers.claimed("o1", _claim(3, "o1#a"))
    assert answers.claimed("o1", _claim(1, "o1#a")) == []
    ((to, refused),) = _sent(answers.claimed("o2", _claim(2, "o2#b")))
    assert (to, refused) == ("o2", Refused("o2#b", 3, {}))
