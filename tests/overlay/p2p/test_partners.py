"""What an overloaded owner has given to partners is joined as if it were its own."""

import pytest

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.membership import Membership
from thalweg.overlay.p2p.index import Index
from thalweg.overlay.p2p.index_messages import Done, Item, Pass, Passed, Put
from thalweg.overlay.p2p.peer import Peer, PeerSettings
from thalweg.overlay.p2p.planning import plan_joins
from thalweg.overlay.p2p.query import Between, JoinQuery, Leaf, to_text
from thalweg.overlay.p2p.result_messages import RowsDone, SendRows
from thalweg.overlay.p2p.tuples import Tup, hash_of
from thalweg.overlay.protocol import Heard, Init, Receive, Send, Tell, TimerFired
from thalweg.overlay.query_spreading import QuerySpreading
from thalweg.overlay.query_table import Record

SECOND_US = 1_000_000
LEAVES = (Leaf("X", 50), Leaf("Y", 50))
JOINS, REST = plan_joins(LEAVES, [Between(0, 0, "=", 1, 0)], {})
# Eager, so that nobody has to claim anything: who owns the values is not what is tested here.
QUERY = JoinQuery("q", "asker", LEAVES, JOINS, ((0, 0), (1, 1)), REST, eager=True)
VALUES = sorted(range(40), key=hash_of)


class Net:
    """`owner` owns all values; `p1`, `p2` and `p3` may be its partners."""

    def __init__(self, monkeypatch):
        monkeypatch.setattr(Peer, "owns", lambda peer, _: peer.address == "owner")
        monkeypatch.setattr(Chord, "neighbours", lambda _: list(self.asked))
        monkeypatch.setattr(Membership, "is_down", lambda m, a: (m.address, a) in self.down)
        self.now_us = 0
        self.nodes = {}
        self.down = set()  # (who thinks so, of whom)
        self.lost = lambda sender, to, message: False
        self.asked = ("p1", "p2", "p3")  # for room
        self.rows = set()
        self.acknowledged = set()
        self.numbers = 0
        self.sent = {"X": [], "Y": []}
        self._queue = []
        for address in ("owner", "p1", "p2", "p3"):
            self.start(address)

    def start(self, address):
        """Also a restart: what it had in memory is gone."""
        membership = Membership()
        membership.address = address
        chord = Chord(membership)
        spreading = QuerySpreading(chord)
        spreading.table.merge(Record("q", to_text(QUERY)))
        settings = PeerSettings(capacity=10, overloaded=0.5)
        self.nodes[address] = Index(chord, membership, spreading, settings)
        self.numbers += 1
        self._step(address, Init(address, self.numbers, {}))

    def _step(self, address, event):
        for effect in self.nodes[address].step(self.now_us, event):
            if isinstance(effect, Send):
                self._queue.append((address, effect.to, effect.message))
            elif isinstance(effect, Tell) and isinstance(effect.request, SendRows):
                rows = effect.request.rows
                self.rows |= {tuple([(t.stream, t.seq) for t in parts]) for parts in rows}
                self._step(address, Heard("p2p-results", RowsDone(effect.request.token)))

    def send(self, sender, to, message):
        self._queue.append((sender, to, message))
        self.settle()

    def settle(self):
        while self._queue:
            sender, to, message = self._queue.pop(0)
            if self.lost(sender, to, message):
                continue
            if to in self.nodes:
                self._step(to, Receive(sender, message))
            elif isinstance(message, Done):
                self.acknowledged |= {number for number, _ in message.items}

    def wait(self, seconds=1):
        for _ in range(seconds):
            self.now_us += SECOND_US
            for address in self.nodes:
                self._step(address, TimerFired("retry"))
                self._step(address, TimerFired("tend"))
            self.settle()

    def come(self, stream, *values):
        """Tuples of a source, to the owner."""
        for value in values:
            self.numbers += 1
            tup = Tup(stream, stream, self.numbers, 5, (value, 0))
            self.sent[stream].append(tup)
            peer = self.nodes["owner"].peer
            (stem,) = peer.dataflow.stems_for(tup)
            item = Item(self.numbers, stem.name, peer.buckets.of(value), (tup,))
            self._queue.append(("source", "owner", Put("source", (item,), ("q",), {}, {})))
        self.settle()

    @property
    def missing(self):
        """Pairs of acknowledged tuples that nobody has found."""
        done = {s: [t for t in ts if t.seq in self.acknowledged] for s, ts in self.sent.items()}
        return {
            (("X", x.seq), ("Y", y.seq))
            for x in done["X"]
            for y in done["Y"]
            if x.values[0] == y.values[0]
        } - self.rows

    @property
    def delegations(self):
        return self.nodes["owner"].owner.partners.delegations

    def all_done(self):
        return len(self.acknowledged) == sum(len(ts) for ts in self.sent.values())


@pytest.fixture
def net(monkeypatch):
    return Net(monkeypatch)


def _delegated(net, values=VALUES[:10]):
    """The upper half of these values is with one partner."""
    net.come("X", *values)
    net.wait(3)
    assert [d.partners for d in net.delegations] == [("p1",)]
    return [v for v in values if net.nodes["owner"].owner.partners.of(v) is not None]


def test_what_comes_to_a_partner_meets_what_was_brought_there(net):
    there = _delegated(net)
    assert there
    net.come("Y", *VALUES[:10])
    assert len(net.rows) == 10
    assert net.all_done()


def test_an_owner_that_seemed_gone_finds_all_that_it_had_brought(net):
    """It was only paused, or cut off, and does not know what others took it for."""
    there = _delegated(net)
    net.down.add(("p1", "owner"))
    net.wait(2)
    net.down.clear()
    net.come("Y", *there)
    assert net.all_done()
    assert not net.missing


def test_a_guest_that_has_nothing_left_is_forgotten(net):
    _delegated(net)
    partner = net.nodes["p1"]
    assert partner.owner.partners.guests
    partner.peer.newest = 10_000
    net.wait(1)
    assert not partner.owner.partners.guests


def test_a_new_sub_domain_leaves_older_ones_within_it_alone(net):
    first = _delegated(net, VALUES[10:20])
    assert first == VALUES[15:20]
    net.come("X", *VALUES[5:10], *VALUES[25:27])
    net.wait(3)
    assert len(net.delegations) == 2
    net.come("Y", *VALUES[5:20], *VALUES[25:27])
    assert net.all_done()
    assert not net.missing


def test_a_partner_that_was_restarted_unnoticed_vouches_for_nothing(net):
    there = _delegated(net)
    net.start("p1")
    net.come("Y", *there)
    assert not net.missing  # they are not acknowledged
    net.wait(5)
    assert not net.missing
    assert net.delegations == []  # all of it is built again


def _passed_on(net):
    """Half of what the first partner has goes on to another. The values there."""
    there = _delegated(net)
    net.come("X", there[0])  # too many: the owner looks for another
    net.wait(2)
    net.come("X", there[0])
    of = net.nodes["owner"].owner.partners.of
    return [v for v in there if of(v).partners == ("p2",)]


def test_what_is_passed_on_meets_what_comes_later(net):
    _passed_on(net)
    assert [d.partners for d in net.delegations] == [("p1",), ("p2",)]
    guests = net.nodes["p2"].owner.partners.guests
    assert sum(g.size for g in guests.values()) > 0
    net.come("Y", *VALUES[:10])
    net.wait(1)
    assert net.all_done()
    assert not net.missing


def test_what_is_under_way_while_a_sub_domain_is_passed_on_goes_to_the_next_partner(net):
    there = _delegated(net)
    net.come("X", there[0])
    net.wait(2)
    net.lost = lambda sender, to, message: (sender, to) == ("owner", "p1")
    net.come("Y", *there)
    net.lost = lambda *_: False
    net.come("X", there[0])
    assert len(net.delegations) == 2
    net.wait(10)
    assert net.all_done()
    assert not net.missing


@pytest.mark.parametrize("kind", [Pass, Passed])
def test_an_order_to_pass_on_that_gets_lost_is_repeated(net, kind):
    net.lost = lambda sender, to, message: isinstance(message, kind)
    _passed_on(net)
    net.come("Y", *VALUES[:10])
    assert not net.all_done()
    net.lost = lambda *_: False
    net.wait(5)
    assert net.all_done()
    assert not net.missing


@pytest.mark.parametrize(("address", "kind"), [("p1", Pass), ("p2", Passed)])
def test_a_restart_while_a_sub_domain_is_passed_on_is_noticed(net, address, kind):
    net.lost = lambda sender, to, message: isinstance(message, kind)
    there = _passed_on(net)
    assert there
    net.start(address)
    net.lost = lambda *_: False
    net.wait(1)
    net.come("Y", *there)
    assert not net.missing
    net.wait(5)
    assert not net.missing


def test_what_was_passed_on_to_two_lives_is_built_again(net):
    """The next partner was restarted in between: it has the second half alone."""
    net.lost = lambda sender, to, message: isinstance(message, Passed)
    _passed_on(net)
    name = net.delegations[1].guest_of
    lives = [net.nodes[a].owner.partners.life for a in ("p1", "p2")]
    net.lost = lambda *_: False
    net.send("p1", "owner", Passed(name, lives[0], ("p2#0.", lives[1])))
    net.come("Y", *VALUES[:10])
    assert not net.all_done()
    net.wait(1)
    assert net.delegations == []
