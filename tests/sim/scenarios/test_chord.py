"""Chord keeps its ring; with a rule dropped, or as first published, its scenario objects."""

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Membership
from thalweg.overlay.routing import id_of
from thalweg.overlay.stack import Stack
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import Options
from thalweg.sim.scenarios.chord import (
    SETTINGS,
    ChordScenario,
    members,
    ring_problem,
    tables_unsettled,
)
from thalweg.sim.weather import Rates
from thalweg.sim.world import World

ENOUGH_SEEDS = range(120)


class NeverLooksForItself(Chord):
    """Rings that were parted stay parted, where nobody hears of a nearer member."""

    def _find_self(self):
        return [] if self.joined else super()._find_self()

    def _greet(self, address):
        return [] if self.joined else super()._greet(address)


class JoinsWithOneSuccessor(Chord):
    """As published in 2001: the list comes later, and may be needed before."""

    def _found_self(self, before, owners):
        return super()._found_self(before, owners if self.joined else owners[:1])

    def _neighbours(self, of, message):
        first = self.table.successors[:1]
        effects = super()._neighbours(of, message)
        if of in first:
            self.table.successors = self.table.successors[:1]
        return effects


class TrustsPredecessorsUnseen(Chord):
    """As published in 2001: the successor's predecessor is adopted without asking it."""

    def _neighbours(self, of, message):
        between = message.predecessor
        effects = super()._neighbours(of, message)
        if self.joined and between is not None and self.table.is_nearer_successor(between):
            self.table.successors = (between,)
        return effects


class NeverRectifies(Chord):
    """A predecessor that is gone is never replaced."""

    def _notified(self, sender, successors):
        before = self.table.predecessor
        effects = super()._notified(sender, successors)
        self.table.predecessor = before or self.table.predecessor
        return effects


class AsksADeadSuccessorForEver(Chord):
    """Membership's word is not heard."""

    def _alive(self, addresses):
        return list(addresses)

    def step(self, now_us, event):
        deaf = type(event).__name__ == "Heard" and type(event.value).__name__ == "Down"
        return [] if deaf else super().step(now_us, event)

    def _stabilise(self):
        first = self.table.successors[:1]
        effects = super()._stabilise()
        self.table.follow((*first, *self.table.successors))
        return effects


@pytest.mark.parametrize(
    "broken",
    [
        NeverLooksForItself,
        JoinsWithOneSuccessor,
        TrustsPredecessorsUnseen,
        NeverRectifies,
        AsksADeadSuccessorForEver,
    ],
)
def test_a_dropped_rule_is_caught(broken):
    class Mutant(ChordScenario):
        def build(self, address):
            membership = Membership()
            return Stack([membership, broken(membership, SETTINGS)])

    assert is_caught(Mutant, ENOUGH_SEEDS)


def _settled_ring(nodes):
    options = Options(1, nodes, 10_000, Rates(), {}, (), False)
    scenario = ChordScenario(options, Generator(1))
    world = World(scenario.build, network=scenario.network(), on_deliver=scenario.delivered)
    for number in range(1, nodes + 1):
        world.start(f"n{number}")
        scenario.admit(world, f"n{number}")
    while tables_unsettled(world):
        world.run_for(SECOND_US)
        assert world.now_us < 60 * SECOND_US
    return world, sorted(world.hosts, key=id_of)


@pytest.mark.parametrize("first", range(8))
def test_fewer_than_r_adjacent_losses_leave_one_ring_at_every_moment(first):
    world, ring = _settled_ring(8)
    for place in range(first, first + SETTINGS.successors - 1):
        world.crash(ring[place % len(ring)])
    for _ in range(300):
        assert ring_problem(members(world)) is None
        world.run_for(SECOND_US // 10)
    assert tables_unsettled(world) is None


def test_more_losses_than_promised_part_the_ring_and_it_finds_itself_again():
    world, ring = _settled_ring(8)
    for address in ring[2 : 3 + SETTINGS.successors]:
        world.crash(address)
    assert ring_problem(members(world)) == f"{ring[1]} has no live successor"
    world.run_for(60 * SECOND_US)
    assert tables_unsettled(world) is None
