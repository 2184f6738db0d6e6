"""Who leads a stream's register, and who only thinks so."""

import pytest

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.membership import Membership
from thalweg.overlay.p2p.register import Group, Member, Stored, StreamState
from thalweg.overlay.p2p.stream_messages import AskStream, Register, Status, Watch
from thalweg.overlay.p2p.streams import Streams
from thalweg.overlay.protocol import Call, Init, Persist, Receive, Send, TimerFired
from thalweg.overlay.query_spreading import QuerySpreading

SECOND_US = 1_000_000


class Net:
    """`a`, `b` and `c` keep the register of X; `d` is to take a's place."""

    def __init__(self):
        self.now_us = 0
        self.cut = set()  # who hears nothing, and is not heard
        self.nodes = {}
        self._queue = []
        for address in "abcd":
            membership = Membership()
            chord = Chord(membership)
            self.nodes[address] = Streams(chord, membership, QuerySpreading(chord))
            self._step(address, Init(address, ord(address), {}))
        members = self.members("abc")
        for address in "abc":
            stored = Stored((1, "a"), (1, "a"), StreamState(1, members))
            self.nodes[address].groups["X"] = Group(stored)

    def members(self, addresses):
        return tuple([Member(a, self.nodes[a].token) for a in addresses])

    def _step(self, address, event):
        effects = self.nodes[address].step(self.now_us, event)
        sent = [e for e in effects if isinstance(e, Send)]
        self._queue += [(address, e.to, e.message) for e in sent]

    def settle(self):
        while self._queue:
            sender, to, message = self._queue.pop(0)
            if sender == to or not {sender, to} & self.cut:
                self._step(to, Receive(sender, message))

    def say(self, address, effects):
        self._queue += [(address, e.to, e.message) for e in effects if isinstance(e, Send)]
        self.settle()

    def stand(self, address):
        self.say(address, self.nodes[address]._voting.stand("X"))
        assert self.nodes[address].groups["X"].leads

    def wait(self, seconds):
        for _ in range(seconds):
            self.now_us += SECOND_US
            for address in self.nodes:
                self._step(address, TimerFired("issue"))
                if self.now_us % (3 * SECOND_US) == 0:
                    self._step(address, TimerFired("tend"))
            self.settle()

    def leaders(self):
        groups = {a: n.groups.get("X") for a, n in self.nodes.items()}
        return [a for a, group in groups.items() if group is not None and group.leads]


@pytest.fixture
def net():
    return Net()


@pytest.mark.parametrize("replaces", [False, True])
def test_a_leader_that_was_replaced_while_cut_off_hears_so(net, replaces):
    """Also where it is no member any more, and its followers tell it nothing. It would answer with
    an old frontier for ever: what is new goes to who leads now."""
    net.stand("a")
    net.wait(3)
    net.cut = {"a"}
    net.stand("b")
    if replaces:
        net.nodes["b"]._drafts["X"].members = net.members("bcd")
        net.wait(3)
        assert net.nodes["d"].groups["X"].stored.state.members == net.members("bcd")
    assert net.leaders() == ["a", "b"]
    net.cut = set()
    net.wait(6)
    assert net.leaders() == ["b"]
    told = net.nodes["a"].step(net.now_us, Call(AskStream("X", Watch("q", 0))))
    assert [e.to for e in told] == ["b"]


def test_a_leader_that_nothing_new_reaches_goes_on_leading(net):
    net.stand("a")
    version = net.nodes["a"].groups["X"].committed.version
    net.wait(30)
    assert net.leaders() == ["a"]
    assert net.nodes["a"].groups["X"].committed.version == version
    told = net.nodes["a"].step(net.now_us, Call(AskStream("X", Watch("q", 0))))
    assert [type(e.message) for e in told] == [Status]


def test_a_leader_that_is_back_before_a_timer_fired_takes_up_what_others_decided_meanwhile(net):
    """It would have them decide anew, as news, what it last knew of: without their sources."""
    net.stand("a")
    net.wait(3)
    net.cut = {"a"}
    net.stand("b")
    net.nodes["b"].step(net.now_us, Call(AskStream("X", Register("s", True))))
    net.wait(1)
    assert "s" in net.nodes["b"].groups["X"].committed.sources
    net.cut = set()
    net.say("b", net.nodes["b"]._voting.confirm("X"))
    assert net.leaders() == ["b"]
    net.cut = {"b"}
    net.stand("a")
    net.wait(3)
    assert "s" in net.nodes["a"].groups["X"].committed.sources


def test_a_ballot_is_on_disk_before_anybody_is_asked_to_vote_for_it(net):
    """Who crashed in between would stand under the same ballot again; then two values could have
    one ballot and one version, and votes for the one be counted for the other."""
    effects = net.nodes["a"]._voting.stand("X")
    asked = [i for i, e in enumerate(effects) if isinstance(e, Send)]
    kept = [i for i, e in enumerate(effects) if isinstance(e, Persist) and e.value is not None]
    assert kept
    assert kept[0] < asked[0]
    ballot = effects[asked[0]].message.ballot
    again = Streams(*_around())
    again.step(0, Init("a", 1, {effects[kept[0]].key: effects[kept[0]].value, "token": b"a#0"}))
    assert again.groups["X"].candidate("a") > ballot


def _around():
    membership = Membership()
    chord = Chord(membership)
    return chord, membership, QuerySpreading(chord)
