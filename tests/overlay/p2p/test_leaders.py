"""Who leads a stream's register, and who only thinks so."""

import pytest

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.membership import Membership
from thalweg.overlay.p2p.register import Group, Member, Stored, StreamState
from thalweg.overlay.p2p.stream_messages import AskStream, Status, Watch
from thalweg.overlay.p2p.streams import Streams
from thalweg.overlay.protocol import Call, Init, Receive, Send, TimerFired
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

    def stand(self, address):
        self._queue += [
            (address, e.to, e.message)
            for e in self.nodes[address]._voting.stand("X")
            if isinstance(e, Send)
        ]
        self.settle()
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
