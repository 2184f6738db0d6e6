"""Queries, epochs and nodes for the tests of this folder."""

from thalweg.overlay.coordinators.tree import CoordinatorTree, TreeSettings
from thalweg.overlay.distribution import messages as say
from thalweg.overlay.distribution.entries import Epoch, Provider, Query, Running
from thalweg.overlay.distribution.picture import Subtree
from thalweg.overlay.distribution.protocol import QueryDistribution, Settings
from thalweg.overlay.protocol import Call, Init, Receive, Send, TimerFired


def query(name, proxy="x", substreams=(0,), weight=1.0, result_bps=0.0, state_bytes=0.0):
    return Query(name, "SELECT *", proxy, substreams, result_bps, weight, state_bytes)


def epoch(number, granter="x", life=1, rescue=0):
    return Epoch(number, rescue, granter, life)


def running(name, owner, number=1, weight=1.0, **about):
    return Running(query(name, weight=weight, **about), epoch(number), owner, weight)


def subtree(address, capability, *runs):
    """A child: providers with their capabilities, and what runs there."""
    found = Subtree(address)
    found.add([*(Provider(a, float(c)) for a, c in capability.items()), *runs])
    return found


class Known:
    """Who is down."""

    def __init__(self, *down):
        self.down = down

    def up(self):
        return []

    def is_down(self, address):
        return address in self.down


class Node:
    def __init__(self, name, *, members=(), parent=None, down=(), persisted=None, **settings):
        self.name = name
        self.tree = CoordinatorTree(Known(), TreeSettings(k=2))
        self.tree.step(0, Init(name, 1, {}))
        if members:
            self.tree._lead(0, members, None)
        if parent:
            self.tree.place.parent = self.tree.root = parent
        self.it = QueryDistribution(Known(*down), self.tree, Settings(**settings))
        self.first = self.it.step(0, Init(name, 1, persisted or {}))

    def hear(self, now_us, sender, message):
        return self.it.step(now_us, Receive(sender, message))

    def ask(self, now_us, request):
        return self.it.step(now_us, Call(request))

    def beat(self, now_us):
        return self.it.step(now_us, TimerFired("beat"))

    def told(self, now_us, child, *entries, life=77):
        """A child's whole report."""
        version = now_us + 1
        return self.hear(now_us, child, say.Report(life, 0, version, entries, ()))


def sent(effects, kind):
    return [(e.to, e.message) for e in effects if isinstance(e, Send) and type(e.message) is kind]


def seek(level=say.NOT_YET, *, weight=1.0, epoch_=None, fair=-1.0):
    return say.Seek("x", 4, query("q"), weight, epoch_, level, fair, 9)


def root_of_two():
    """r leads itself and s at level 0, and itself and b (with c below it) at level 1."""
    root = Node("r", members=("s",))
    root.tree._lead(0, ["b"], None)
    root.told(0, "s", Provider("s", 1.0))
    root.told(0, "b", Provider("b", 1.0), Provider("c", 1.0))
    return root
