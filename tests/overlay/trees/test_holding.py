"""IDLE, WAIT and HOLD: as printed it can deadlock; with leases it cannot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.overlay.generator import Generator
from thalweg.overlay.trees.holding import Acknowledge, Adapt, AskToHold, Holding, State
from thalweg.overlay.trees.stream import Tree

A, B = Tree("h", "a"), Tree("h", "b")
NEVER = 1 << 60


def node(number, wait_us=NEVER, hold_us=NEVER):
    return Holding(number, wait_us, hold_us)


def test_a_token_asks_children_to_hold_and_all_acknowledgements_let_it_adapt():
    n = node(5)
    assert n.token(0, A, 1, ("x", "y")) == [AskToHold("x", A, 1), AskToHold("y", A, 1)]
    assert n.state is State.WAIT
    assert n.ack(1, "x", A, 1) == []
    assert n.ack(1, "x", A, 1) == []  # a copy counts once
    assert n.ack(2, "y", A, 1) == [Adapt(A, 1, ("x", "y"))]
    assert n.is_busy(A)
    assert n.adapted(3, A) == []
    assert n.state is State.IDLE


def test_who_is_held_waits_for_the_token_of_that_tree():
    n = node(5)
    assert n.hold(0, "p", A, 1, 9) == [Acknowledge("p", A, 1)]
    assert n.hold(0, "p", A, 1, 9) == [Acknowledge("p", A, 1)]  # again, the first was lost
    assert n.hold(1, "q", B, 1, 9) == []
    assert n.token(2, B, 1, ("x",)) == []  # queued
    assert n.state is State.HOLD
    # The token of A unlocks; then B's token is taken. 9 is above 5: q's hold is taken, too.
    assert n.token(3, A, 1, ()) == [AskToHold("x", B, 1), Acknowledge("q", B, 1)]


def test_who_waits_holds_only_for_a_higher_number():
    low, high = node(3), node(7)
    low.token(0, A, 1, ("x",))
    high.token(0, A, 1, ("x",))
    assert low.hold(1, "p", B, 1, 5) == [Acknowledge("p", B, 1)]
    assert high.hold(1, "p", B, 1, 5) == []
    # Acknowledged while held: ready, and performed when the hold ends.
    assert low.ack(2, "x", A, 1) == []
    assert low.token(3, B, 1, ()) == [Adapt(A, 1, ("x",))]


def test_an_old_or_repeated_token_is_ignored():
    n = node(5)
    n.token(0, A, 2, ("x",))
    assert n.token(1, A, 3, ("x",)) == []  # still at it
    n.ack(1, "x", A, 2)
    n.adapted(2, A)
    assert n.token(3, A, 2, ("x",)) == []
    assert n.token(3, A, 3, ("x",)) == [AskToHold("x", A, 3)]


def test_while_it_adapts_a_node_does_not_hold_still():
    n = node(1)
    n.token(0, A, 1, ("x",))
    n.ack(1, "x", A, 1)
    assert n.hold(2, "p", B, 1, 9) == []
    assert n.adapted(3, A) == [Acknowledge("p", B, 1)]


class Network:
    """Nodes whose messages arrive one by one, in an order that is drawn or given."""

    def __init__(self, nodes, children):
        self.nodes, self.children = nodes, children  # {(node, tree): children}
        self.mail, self.now = [], 0
        self.adapted = []

    def act(self, name, actions):
        for action in actions:
            if isinstance(action, Adapt):
                self.adapted.append((name, action.tree))
                for child in self.children.get((name, action.tree), ()):
                    self.mail.append((name, child, "token", action.tree, action.round))
                self.act(name, self.nodes[name].adapted(self.now, action.tree))
            else:
                kind = "hold" if isinstance(action, AskToHold) else "ack"
                self.mail.append((name, action.to, kind, action.tree, action.round))

    def token(self, name, tree, round_):
        children = tuple(self.children.get((name, tree), ()))
        self.act(name, self.nodes[name].token(self.now, tree, round_, children))

    def deliver(self, at):
        sender, to, kind, tree, round_ = self.mail.pop(at)
        n = self.nodes[to]
        if kind == "token":
            self.token(to, tree, round_)
        elif kind == "hold":
            self.act(to, n.hold(self.now, sender, tree, round_, self.nodes[sender].number))
        else:
            self.act(to, n.ack(self.now, sender, tree, round_))

    def deliver_to(self, sender, to):
        at = next(i for i, m in enumerate(self.mail) if m[:2] == (sender, to))
        self.deliver(at)


def test_as_printed_it_deadlocks_without_any_circle_of_parents():
    """q holds c and waits for p; p waits for c; c waits for q. Theorem 4.2 overlooks the hold."""
    net = Network(
        {"p": node(2), "q": node(1), "c": node(0)}, {("p", A): ["c"], ("q", B): ["c", "p"]}
    )
    net.token("p", A, 1)
    net.token("q", B, 1)
    net.deliver_to("q", "c")  # c holds still for q
    while net.mail:
        net.deliver(0)
    assert net.adapted == []
    assert {n.state for n in net.nodes.values()} == {State.WAIT, State.HOLD}


def test_with_leases_it_goes_on():
    net = Network(
        {"p": node(2, 10, 30), "q": node(1, 10, 30), "c": node(0, 10, 30)},
        {("p", A): ["c"], ("q", B): ["c", "p"]},
    )
    net.token("p", A, 1)
    net.token("q", B, 1)
    net.deliver_to("q", "c")
    for _ in range(10):
        while net.mail:
            net.deliver(0)
        net.now += 10
        for name, n in net.nodes.items():
            net.act(name, n.expire(net.now))
    assert set(net.adapted) == {("p", A), ("q", B)}
    assert {n.state for n in net.nodes.values()} == {State.IDLE}


@pytest.mark.parametrize("loss", [0.0, 0.3])
@given(seed=st.integers(0, 1 << 32))
def test_no_node_waits_for_ever_whatever_is_lost_and_in_whatever_order(loss, seed):
    generator = Generator(seed)
    names = [f"n{i}" for i in range(6)]
    trees = [Tree("n0", f"s{i}") for i in range(3)]
    children = {}
    for tree in trees:
        order = [n for n in names if n != "n0"]
        generator.shuffle(order)
        order = ["n0", *order]
        for i, n in enumerate(order[1:], 1):
            children.setdefault((order[generator.below(i)], tree), []).append(n)
    net = Network(
        {n: node(generator.below(1000) * 8 + i, 10, 40) for i, n in enumerate(names)}, children
    )
    for round_ in range(3):
        for tree in trees:
            net.token("n0", tree, round_)
        for _ in range(40):
            net.now += generator.below(5)
            while net.mail and generator.chance(0.8):
                at = generator.below(len(net.mail))
                if generator.chance(loss):
                    net.mail.pop(at)
                else:
                    net.deliver(at)
            for name, n in net.nodes.items():
                net.act(name, n.expire(net.now))
    for _ in range(40):
        while net.mail:
            net.deliver(0)
        net.now += 10
        for name, n in net.nodes.items():
            net.act(name, n.expire(net.now))
    assert {n.state for n in net.nodes.values()} == {State.IDLE}
