"""A lost source is passed on to one who has copies, and nothing of the old speaker counts then."""

from types import SimpleNamespace

import msgspec
import pytest

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.membership import Membership
from thalweg.overlay.p2p.answers import Answers
from thalweg.overlay.p2p.copies import Copies, CopyLog
from thalweg.overlay.p2p.dataflow import Dataflow
from thalweg.overlay.p2p.index import Index
from thalweg.overlay.p2p.index_messages import (
    Claim,
    Copied,
    Copy,
    Promised,
    Refused,
    Superseded,
    TookOver,
)
from thalweg.overlay.p2p.leading import Draft
from thalweg.overlay.p2p.owner import Owner
from thalweg.overlay.p2p.peer import Peer, PeerSettings
from thalweg.overlay.p2p.planning import plan_joins
from thalweg.overlay.p2p.query import Between, JoinQuery, Leaf
from thalweg.overlay.p2p.register import Member, SourceEntry, StreamState
from thalweg.overlay.p2p.source import Kept, Meta, Source
from thalweg.overlay.p2p.sources import Sources
from thalweg.overlay.p2p.stream_messages import Fenced, Look, Register, Report, Status
from thalweg.overlay.p2p.tuples import Tup, inside
from thalweg.overlay.protocol import Deliver, Init, Persist, Receive, Send
from thalweg.overlay.query_spreading import QuerySpreading
from thalweg.overlay.query_table import QueryTable

SECOND_US = 1_000_000
MEMBERS = tuple(Member(a, f"{a}#1") for a in "abc")
TABLE = QueryTable()


def _draft(entry, frontier=0):
    return Draft(StreamState(5, MEMBERS, frontier=frontier, sources={"s": entry}), 0, (1, "a"))


def _committed(draft, before):
    """What a majority has accepted of what the leader wants."""
    state = draft.next_state(before)
    assert state is not None
    draft.decided(state)
    return state


# --- at the leader ---


def test_an_heir_that_does_not_report_is_told_again():
    """The word that it speaks for a source gets lost; who has no other source would never ask."""
    entry = SourceEntry("n1", 1, 7, ("n2#a", "n3#a"), copied=True)
    draft = _draft(entry)
    before = StreamState(5, MEMBERS, sources={"s": entry})
    draft.fenced("n2", Fenced("X", "s", 2, True, 4, "n2#a"))
    _committed(draft, before)
    draft.status("X", "n2", TABLE)  # this one is lost
    assert draft.unaware(SECOND_US) == []
    assert draft.unaware(3 * SECOND_US) == ["n2"]
    draft.status("X", "n2", TABLE)
    assert draft.unaware(4 * SECOND_US) == []  # not all the time
    draft.take(5 * SECOND_US, "n2", Report("s", 2, 7, (), {}), TABLE)
    assert draft.unaware(6 * SECOND_US) == []
    assert draft.unaware(9 * SECOND_US) == ["n2"]


def test_a_holder_that_is_none_any_more_does_not_take_over():
    """It was fenced, but the source was there after all, and has gone on with another holder."""
    draft = _draft(SourceEntry("n1", 1, 7, ("n2#a",), copied=True))
    draft.take(1, "n1", Report("s", 1, 9, ("n3#a",), {}), TABLE)
    draft.fenced("n2", Fenced("X", "s", 2, True, 4, "n2#a"))
    assert draft.entries["s"].address == "n1"
    draft.fenced("n3", Fenced("X", "s", 2, True, 6, "n3#a"))
    assert (draft.entries["s"].address, draft.entries["s"].end) == ("n3", 6)


def test_a_holder_that_has_lost_its_disk_is_none():
    draft = _draft(SourceEntry("n1", 1, 7, ("n2#a", "n3#a"), copied=True))
    draft.fenced("n2", Fenced("X", "s", 2, True, 4, "n2#b"))
    assert draft.entries["s"].address == "n1"
    lost = draft.lost(60 * SECOND_US, SECOND_US, lambda a: a == "n1", ())
    assert lost == [("s", 2, "n3")]


def test_a_report_that_was_overtaken_brings_no_holders_back():
    """The source counts the new ones alone since it heard of them; the old ones have gaps."""
    entry = SourceEntry("n1", 1, 7, ("n2#a",), copied=True)
    draft = _draft(entry)
    before = StreamState(5, MEMBERS, sources={"s": entry})
    draft.take(1, "n1", Report("s", 1, 8, ("n3#a",), {}, copies_since=5), TABLE)
    before = _committed(draft, before)
    draft.take(2, "n1", Report("s", 1, 9, ("n2#a",), {}, copies_since=4), TABLE)
    assert draft.entries["s"].copies == ("n3#a",)
    assert draft.entries["s"].frontier == 9
    since = before.version  # it has heard that the others are listed, and wants the first again
    draft.take(3, "n1", Report("s", 1, 9, ("n2#a",), {}, copies_since=since), TABLE)
    assert draft.entries["s"].copies == ("n2#a",)


def test_a_second_heir_does_not_bring_back_what_the_first_has_left_out():
    """The old speaker was there for a while, and copied more to the holder that was not fenced."""
    draft = _draft(SourceEntry("n1", 1, 7, ("n2#a", "n3#a"), copied=True))
    draft.fenced("n2", Fenced("X", "s", 2, True, 4, "n2#a"))
    draft.fenced("n3", Fenced("X", "s", 3, True, 9, "n3#a"))
    entry = draft.entries["s"]
    assert (entry.address, entry.epoch, entry.end) == ("n3", 3, 4)


def test_an_heir_begins_at_the_streams_frontier():
    """What the old speaker promised beyond it rested on acknowledgements that nobody knows of."""
    draft = _draft(SourceEntry("n1", 1, 70, ("n2#a",), copied=True), frontier=30)
    draft.fenced("n2", Fenced("X", "s", 2, True, 4, "n2#a"))
    assert draft.entries["s"].frontier == 30


# --- at a node ---


@pytest.fixture
def peer():
    membership = Membership()
    peer = Peer(Chord(membership), membership, PeerSettings(buckets=16, copies=1))
    peer.address = "n2"
    leaves = (Leaf("X", 50), Leaf("Y", 50))
    joins, rest = plan_joins(leaves, [Between(0, 0, "=", 1, 0)], {})
    peer.dataflow = Dataflow([JoinQuery("q", "n1", leaves, joins, ((0, 0),), rest)])
    return peer


def _status(frontier=0, version=1, epoch=2, address="n2", copies=(), ends=None):
    speakers = (("s", epoch, address),)
    return Status("X", frontier, 1, speakers, {}, {}, {"s": copies}, ends=ends, version=version)


def _tuples(*stamps):
    return tuple(Tup("X", "s", i, ts, (i,)) for i, ts in enumerate(stamps))


def _sent(effects, kind):
    return [e.message for e in effects if isinstance(e, Send) and isinstance(e.message, kind)]


def _claimed(answers):
    effects = answers.claimed("o1", Claim(((0, 15),), 1, "o1#a", 0, {}, ()))
    (promised,) = _sent(effects, Promised)
    return promised


def test_what_had_taken_effect_is_in_an_heirs_first_promise(peer):
    """Also while it has no copies of its own yet: others of its stream went on by it."""
    sources = Sources(peer, TABLE)
    copies, answers = Copies(peer, sources), Answers(peer, sources)
    tuples = {t.seq: t for t in _tuples(10, 20, 30)}
    copies.logs["s"] = CopyLog("X", "s", 1, 2, 0, 3, tuples)
    status = _status(frontier=25)
    copies.adopt(status)
    sources.told(0, status)
    promised = _claimed(answers)
    assert promised.sources == (("s", 2),)
    assert [i.parts[0].ts for i in promised.items] == [10, 20]  # 30 may not count in the end


def test_an_heir_forgets_what_the_register_says_never_counted(peer):
    sources = Sources(peer, TABLE)
    copies = Copies(peer, sources)
    tuples = {t.seq: t for t in _tuples(10, 20, 30)}
    copies.logs["s"] = CopyLog("X", "s", 1, 3, 0, 3, tuples)
    effects = copies.adopt(_status(epoch=3, ends={"s": 2}))
    assert [k.tup.ts for k in sources.sources["s"].log.values()] == [10, 20]
    assert TookOver("s", 3, 2) in [e.value for e in effects if isinstance(e, Deliver)]
    gone = {e.key for e in effects if isinstance(e, Persist) and e.value is None}
    assert gone >= {"c:s:0", "c:s:1", "c:s:2"}


def test_after_a_restart_a_source_promises_nothing_before_it_knows_what_counts(peer):
    sources = Sources(peer, TABLE)
    answers = Answers(peer, sources)
    meta = Meta("X", "s", 1, 0, 2, ("n3#a",), {}, is_heir=False)
    sources.restore(meta, list(_tuples(10, 20)), {})
    sources.told(0, _status(epoch=1, copies=("n3#a",)))
    source = sources.sources["s"]
    assert source.is_open
    assert _claimed(answers).sources == ()
    source.copied["n3#a"] = 2
    sources.accept(source)
    promised = _claimed(answers)
    assert promised.sources == (("s", 1),)
    assert [i.parts[0].ts for i in promised.items] == [10, 20]


@pytest.mark.parametrize("is_heir", [True, False])
def test_one_that_ended_while_its_node_was_away_does_not_come_back(peer, is_heir):
    """All that it retained was needed no more: an heir said so, and the register forgot it."""
    sources = Sources(peer, TABLE)
    meta = Meta("X", "s", 1 + is_heir, 0, 2, ("n3#a",), {}, is_heir=is_heir, heard=8)
    sources.restore(meta, list(_tuples(10, 20)), {})
    (asked,) = sources.report(0)
    assert isinstance(asked.request.body, Look)  # it would be admitted once more
    others = msgspec.structs.replace(_status(version=7), sources=(("t", 1, "n5"),))
    sources.told(0, others)  # older than what it has heard itself
    assert "s" in sources.sources
    told = sources.told(0, msgspec.structs.replace(others, version=8))
    assert not sources.sources
    assert Superseded("s", meta.epoch) in [e.value for e in told if isinstance(e, Deliver)]


def test_one_that_was_never_admitted_registers_after_a_restart(peer):
    sources = Sources(peer, TABLE)
    sources.restore(Meta("X", "s", 1, 0, 0, (), {}, is_heir=False), [], {})
    (asked,) = sources.report(0)
    assert asked.request.body == Register("s", True)
    sources.told(0, msgspec.structs.replace(_status(version=7), sources=()))
    assert "s" in sources.sources


def test_a_status_that_was_overtaken_changes_nothing(peer):
    """Else copies would count that the register does not list any more."""
    sources = Sources(peer, TABLE)
    source = sources.sources["s"] = Source("X", "s", is_open=True)
    sources.told(0, _status(version=8, epoch=1, copies=("n3#a",)))
    sources.told(0, _status(version=7, epoch=1, copies=("n4#a",)))
    assert source.logged_copies == ("n3#a",)
    assert Source.restored(source.meta, [], {}).heard == 8


def test_a_copy_on_another_disk_does_not_count_before_the_register_knows(peer):
    sources = Sources(peer, TABLE)
    copies = Copies(peer, sources)
    source = sources.sources["s"] = Source("X", "s", is_open=True, next_seq=3)
    source.log = {t.seq: Kept(t) for t in _tuples(10, 20, 30)}
    source.busy = dict.fromkeys(source.log)
    source.logged_copies = source.reported_copies = ("n3#a",)
    copies.copied("n3", Copied("s", 1, 2, "n3#a"))
    copies.copied("n3", Copied("s", 1, 3, "n3#b"))  # it has lost its disk, and its fences
    assert source.accepted == 2
    copies.tend(0)
    assert source.reported_copies == ("n3#b",)
    assert source.accepted == 2
    sources.told(0, _status(version=2, epoch=1, copies=("n3#b",)))
    assert source.accepted == 3


def test_an_empty_disk_has_nothing_of_what_was_copied_to_the_one_before_it():
    """The source does not know yet that the disk is another, and sends what the old one lacked."""
    index, _ = _index()
    late = Copy("X", "s", 1, 0, 2, (Tup("X", "s", 2, 30, (2,)),))
    for message in (late, Copy("X", "s", 1, 0, 3, ())):
        (copied,) = _sent(index.step(0, Receive("n1", message)), Copied)
        assert copied.upto == 0
    again = Copy("X", "s", 1, 0, 0, _tuples(10, 20))
    (copied,) = _sent(index.step(0, Receive("n1", again)), Copied)
    assert copied.upto == 2
    gone_by = Copy("X", "s", 1, 5, 5, (Tup("X", "s", 5, 30, (2,)),))
    (copied,) = _sent(index.step(0, Receive("n1", gone_by)), Copied)
    assert copied.upto == 6  # what came before is not needed any more


def test_a_silent_sources_holder_is_asked_now_and_then(peer):
    sources = Sources(peer, TABLE)
    copies = Copies(peer, sources)
    source = sources.sources["s"] = Source("X", "s", is_open=True)
    source.logged_copies = source.reported_copies = ("n3#a",)
    copies.copied("n3", Copied("s", 1, 0, "n3#a"))
    asked = [len(_sent(copies.tend(s * SECOND_US), Copy)) for s in range(7)]
    assert asked == [1, 0, 0, 1, 0, 0, 1]


# --- a whole node ---


def _index(persisted=None):
    membership = Membership()
    chord = Chord(membership)
    index = Index(chord, membership, QuerySpreading(chord), PeerSettings(copies=1))
    disk = dict(persisted or {})
    _write(disk, index.step(0, Init("n2", 1, disk)))
    return index, disk


def _write(disk, effects):
    for effect in effects:
        if isinstance(effect, Persist) and effect.value is None:
            disk.pop(effect.key, None)
        elif isinstance(effect, Persist):
            disk[effect.key] = effect.value
    return effects


def test_who_spoke_for_a_source_takes_no_copies_from_before_for_ever():
    """The old speaker was held up, and knows nothing: what it copies now must not be accepted."""
    index, disk = _index()
    old = Copy("X", "s", 1, 0, 0, _tuples(10, 20))
    assert _sent(_write(disk, index.step(0, Receive("n1", old))), Copied)
    log = index.copies.logs["s"]
    log.fence = 2
    effects = _write(disk, index.copies.adopt(_status()))
    assert any(isinstance(e, Deliver) for e in effects)
    later = Copy("X", "s", 1, 0, 2, (Tup("X", "s", 2, 30, (2,)),))
    assert not _sent(index.step(0, Receive("n1", later)), Copied)
    _write(disk, index.sources.told(0, _status(epoch=3, address="n5")))  # and passed on again
    assert not index.sources.sources
    assert not _sent(index.step(0, Receive("n1", later)), Copied)
    again, _ = _index(disk)
    assert again.copies.disk == index.copies.disk
    assert not _sent(again.step(0, Receive("n1", later)), Copied)
    assert _sent(again.step(0, Receive("n5", Copy("X", "s", 3, 0, 0, ()))), Copied)


# --- owners ---


@pytest.fixture
def owner(peer, monkeypatch):
    """And the buckets that the ring gives it, which a test may change."""
    ring = SimpleNamespace(runs=())
    monkeypatch.setattr(Peer, "owned", lambda _: ring.runs)
    monkeypatch.setattr(Peer, "owns", lambda _, bucket: inside(bucket, ring.runs))
    owner = Owner(peer, TABLE)
    owner.start("n2#x.", 0)
    return owner, ring


def test_buckets_that_were_an_owners_for_a_moment_are_let_go(owner):
    """Between two looks at the ring: who keeps them outbids their owner for ever."""
    owner, ring = owner
    owner.tend(0)
    ring.runs = ((0, 9),)
    assert owner.claims.begin(4) is not None
    ring.runs = ()
    owner.tend(1)
    assert owner.claims.holdings == []


def test_only_the_rings_owner_outbids(owner):
    owner, ring = owner
    ring.runs = ((0, 9),)
    holding = owner.claims.begin(4)
    owner.claims.refused(0, Refused(holding.life, 5, {}))
    assert holding.number == 6
    ring.runs = ((0, 3),)
    owner.claims.refused(0, Refused(holding.life, 8, {}))
    assert holding.number == 6
