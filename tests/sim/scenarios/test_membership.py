"""Membership in networks that outgrow a view; with a rule dropped, its scenario objects."""

import pytest
from tests.sim.scenarios.swarm import is_caught

from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Join, Membership, Settings
from thalweg.overlay.protocol import SetTimer
from thalweg.overlay.stack import Stack
from thalweg.overlay.view import ALIVE, LEFT, SUSPECT, Word
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.scenarios.membership import (
    MembershipScenario,
    members_at,
    open_accusation,
    stays_connected,
)
from thalweg.sim.weather import Weather
from thalweg.sim.world import World

ENOUGH_SEEDS = range(60)


class AsksOnlyTheLiving(Membership):
    """Halves of a partition never find each other."""

    def _compare(self):
        if not self.view.up():
            return super()._compare()
        other = self._generator.choice(self.view.up())
        kept = [e for e in super()._compare() if isinstance(e, SetTimer)]
        return [*kept, *self._probe(other)]


class NeverObjects(Membership):
    """A false accusation stands."""

    def _object_to(self, word):
        return []


class NeverGivesUp(Membership):
    """Suspects stay suspects."""

    def _take(self, words, *options, **more):
        return [e for e in super()._take(words, *options, **more) if not isinstance(e, SetTimer)]


class ForgetsIncarnations(Membership):
    """A restart looks like the life before, which was already given up."""

    def _init(self, address, seed, own, members):
        effects = super()._init(address, seed, None, members)
        self._object_to = lambda word: []
        return effects


class TakesSilenceForLeaving(Membership):
    def _suspect(self, token):
        address = self._probed[token]
        super()._suspect(token)
        return self._take([Word(address, self.view.words[address].incarnation, LEFT)])


@pytest.mark.parametrize(
    "broken",
    [AsksOnlyTheLiving, NeverObjects, NeverGivesUp, ForgetsIncarnations, TakesSilenceForLeaving],
)
def test_a_dropped_rule_is_caught(broken):
    class Mutant(MembershipScenario):
        def build(self, address):
            return Stack([broken()])

    assert is_caught(Mutant, ENOUGH_SEEDS)


def _connected(world, start):
    """Everybody that word from `start` can get to: those who know each other, one way or both."""
    known = {h.address: set(members_at(h).up()) for h in world.up()}
    found, todo = {start}, [start]
    while todo:
        here = todo.pop()
        for there in known[here] | {a for a, others in known.items() if here in others}:
            if there not in found:
                found.add(there)
                todo.append(there)
    return found


def test_halves_find_each_other_where_nobody_knows_all():
    """Forty nodes that remember eight each, cut in two for long enough to give each other up."""
    world = World(lambda address: Stack([Membership(Settings(capacity=8))]), seed=1)
    names = [f"n{number}" for number in range(40)]
    for number, address in enumerate(names):
        world.start(address)
        world.call(address, "membership", Join((names[number // 2],)))
    world.run_for(30 * SECOND_US)
    world.weather = Weather(
        Generator(1), side={n: n % 2 for n in range(40)}, cut=frozenset({(0, 1), (1, 0)})
    )
    world.run_for(90 * SECOND_US)
    for side in (0, 1):
        assert _connected(world, names[side]) == set(names[side::2])
    world.weather = None
    world.run_for(60 * SECOND_US)
    assert _connected(world, "n0") == set(names)
    assert all(len(members_at(h).view.words) <= 8 for h in world.up())


def test_the_last_acquaintance_of_a_newcomer_is_not_spared():
    world = World(lambda address: Stack([Membership()]), seed=1)
    for address in ("n1", "n2", "n3"):
        world.start(address)
        world.call(address, "membership", Join(("n1", "n2", "n3")))
    world.run_for(5 * SECOND_US)
    assert all(stays_connected(world, host) for host in world.up())
    world.start("j1")
    world.call("j1", "membership", Join(("n2",)))
    assert [h.address for h in world.up() if not stays_connected(world, h)] == ["n2"]
    world.crash("j1")
    assert [h.address for h in world.up() if not stays_connected(world, h)] == ["n2"]
    world.leave("j1")
    assert all(stays_connected(world, host) for host in world.up())


def test_a_suspicion_against_one_who_runs_is_open_until_it_objects():
    world = World(lambda address: Stack([Membership()]), seed=1)
    for address in ("n1", "n2", "n3"):
        world.start(address)
        world.call(address, "membership", Join(("n1", "n2", "n3")))
    world.run_for(5 * SECOND_US)
    assert open_accusation(world) is None
    world.pause("n2")
    while open_accusation(world) is None:
        world.run_for(SECOND_US // 10)
        assert world.now_us < 10 * SECOND_US
    assert open_accusation(world) in ("n1 suspects n2, which runs", "n3 suspects n2, which runs")
    world.resume("n2")
    world.run_for(5 * SECOND_US)  # word of it gets round, as the suspicion did
    assert open_accusation(world) is None


def test_a_suspicion_against_one_who_stopped_is_right():
    world = World(lambda address: Stack([Membership()]), seed=1)
    for address in ("n1", "n2"):
        world.start(address)
        world.call(address, "membership", Join(("n1", "n2")))
    world.run_for(5 * SECOND_US)
    world.crash("n2")
    word = members_at(world.hosts["n1"]).view.words
    while word["n2"].status == ALIVE:
        assert world.now_us < 10 * SECOND_US
        world.run_for(SECOND_US // 10)
    assert word["n2"].status == SUSPECT
    assert open_accusation(world) is None
