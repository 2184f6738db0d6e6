"""Dissemination trees with a rule dropped are caught by their scenario."""

from collections import Counter

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.trees import adapting
from thalweg.overlay.trees.hanging import Hanging
from thalweg.overlay.trees.holding import Holding
from thalweg.overlay.trees.home import Home
from thalweg.overlay.trees.relay import Relay
from thalweg.overlay.trees.state import Child
from thalweg.overlay.trees.subscriptions import Subscriptions
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.run import run
from thalweg.sim.scenarios.trees import TreesScenario

ENOUGH_SEEDS = range(30)


class Impatient(TreesScenario):
    settle_within_us = 40 * SECOND_US


def takes_gaps(self, classes, start, upto, lines):
    return TAKE(self, classes, min(start, self.upto), upto, lines)


def takes_any_classes(self, classes, start, upto, lines):
    return TAKE(self, (*classes, *self._has), start, upto, lines)


def doubles(self, classes, start, upto, lines):
    had = self.upto
    taken = TAKE(self, classes, start, upto, lines)
    self.place = min(self.place, start) if taken and start < had else self.place
    return taken


def forgets_its_place(self):
    kept, self.place = self.place, self.begins
    packed = REMEMBERED(self)
    self.place = kept
    return packed


def keeps_what_it_has(self):
    """Though somebody below needs another class."""
    if self._has:
        self._has = frozenset(self.classes)
    else:
        CHOOSE_START(self)


def never_lets_go(self, now_us, place):
    return LOOK_AFTER_PARENT(self, now_us, place) if place.parent is None else []


def takes_ancestors(self, now_us, sender, message):
    place = self.places.get(message.tree)
    if place is None:
        return ASKED_TO_JOIN(self, now_us, sender, message)
    place.children.setdefault(sender, Child(now_us)).heard_us = now_us
    return [self._beat(place, sender)]


def sees_no_circle(self, now_us, sender, beat):
    place = self.places.get(beat.tree)
    if place is not None:
        place.stamp_us = now_us
    path = tuple(a for a in beat.path if a != self._own)
    return HEARD_BEAT(self, now_us, sender, type(beat)(beat.tree, path, *_rest(beat)))


def _rest(beat):
    return beat.stamp, beat.siblings, beat.uncles, beat.known


def asks_those_below(self, now_us, place):
    """An orphan that would hang under its own children: what leads to circles."""
    place.hints = [*place.children, *place.hints]
    return LOOK_FOR_PARENT(self, now_us, place)


TAKE, REMEMBERED, LOOK_FOR_PARENT = Relay.take, Relay.remembered, Hanging._look_for_parent
CHOOSE_START, LOOK_AFTER_PARENT = Relay.choose_start, Hanging._look_after_parent
ASKED_TO_JOIN, HEARD_BEAT = Hanging._asked_to_join, Hanging._heard_beat


@pytest.mark.parametrize(
    "rules",
    [
        {(Relay, "take"): takes_gaps},
        {(Relay, "take"): takes_any_classes},
        {(Relay, "take"): doubles},
        {(Relay, "remembered"): forgets_its_place},
        {(Relay, "choose_start"): keeps_what_it_has},
        {(Home, "replayed"): classmethod(lambda cls, tree, entries: cls(tree))},
        {(Subscriptions, "_renew"): lambda self, now_us: []},
        {(Hanging, "_look_after_parent"): never_lets_go},
        {
            (Hanging, "_look_for_parent"): asks_those_below,
            (Hanging, "_heard_beat"): sees_no_circle,
            (Hanging, "_asked_to_join"): takes_ancestors,
        },
        {(Holding, "expire"): lambda self, now_us: []},
        {(Hanging, "_look_for_parent"): lambda self, now_us, place: []},
    ],
    ids=lambda rules: "+".join(getattr(f, "__name__", name) for (_, name), f in rules.items()),
)
def test_a_dropped_rule_is_caught(monkeypatch, rules):
    for (where, name), mutated in rules.items():
        monkeypatch.setattr(where, name, mutated)
    assert is_caught(Impatient, ENOUGH_SEEDS)


def test_circles_are_refused_and_found_even_where_nodes_ask_for_them(monkeypatch):
    monkeypatch.setattr(Hanging, "_look_for_parent", asks_those_below)
    assert all(run(TreesScenario, seed).problem is None for seed in range(12))
    monkeypatch.setattr(Hanging, "_asked_to_join", takes_ancestors)  # found, if not refused
    assert all(run(TreesScenario, seed).problem is None for seed in range(12))


def test_trees_do_change_while_rows_travel(monkeypatch):
    """Else nothing that the scenario promises would mean much."""
    chosen, rehung = Counter(), Counter()
    best, heard = adapting.best, adapting.Adaptation._heard_rehung

    def counted(view, least):
        choice = best(view, least)
        if choice is not None:
            chosen[choice.transformation] += 1
        return choice

    def told(self, now_us, message):
        rehung[message.done] += 1
        return heard(self, now_us, message)

    monkeypatch.setattr(adapting, "best", counted)
    monkeypatch.setattr(adapting.Adaptation, "_heard_rehung", told)
    for seed in range(25):
        assert run(TreesScenario, seed).problem is None
    assert len(chosen) >= 5
    assert rehung[True] > 100
    assert rehung[False] > 0
