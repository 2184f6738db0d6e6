"""The bad phase: what happens to links and machines, and that healing undoes it."""

from dataclasses import replace

import pytest

from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Membership
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Clock
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import HAPPENINGS, RESTARTS, Options
from thalweg.sim.scenario import Scenario
from thalweg.sim.storm import Storm, enter, skewed_clock
from thalweg.sim.weather import Rates
from thalweg.sim.world import World


class Recording(Scenario):
    name, about = "recording", "who was introduced"

    def __init__(self, options):
        super().__init__(options, Generator(1))
        self.admitted = []
        self.spared = set()

    def build(self, address):
        return Stack([Membership()])

    def admit(self, world, address):
        self.admitted.append(address)

    def can_spare(self, world, host):
        return host.address not in self.spared


def _options(*kinds, restarts=(), skew=False, rates=None):
    gaps = dict.fromkeys(kinds, SECOND_US)
    return Options(3, 4, 1_000, rates or Rates(), gaps, restarts, skew)


def _storm(options, spared=()):
    scenario = Recording(options)
    scenario.spared.update(spared)
    world = World(scenario.build, seed=1)
    for number in range(4):
        enter(world, scenario, options, f"n{number}")
    return world, scenario, Storm(world, scenario, options)


@pytest.mark.parametrize("kind", HAPPENINGS)
def test_each_kind_happens_and_is_counted(kind):
    world, _, _ = _storm(_options(kind))
    world.run_for(5 * SECOND_US)
    assert world.faults[kind] >= 2
    assert {k for k in HAPPENINGS if world.faults[k]} == {kind}


def test_those_that_cannot_be_spared_go_on():
    world, _, _ = _storm(_options("crash", "leave", "pause"), spared=["n0", "n2"])
    world.run_for(60 * SECOND_US)
    assert [h.address for h in world.up() if not h.paused] == ["n0", "n2"]


def test_machines_return_with_or_without_their_disk():
    for how in RESTARTS:
        world, scenario, storm = _storm(_options("crash", restarts=(how,)), spared=["n0"])
        world.run_for(60 * SECOND_US)
        storm.heal()
        assert world.faults[how] > 0
        assert bool(scenario.admitted) == (how == "restart lost")


def test_healing_undoes_everything_but_death():
    kinds = ("clog", "partition", "pause", "slow", "crash")
    options = _options(*kinds, restarts=("restart kept",), rates=Rates(loss=0.5))
    world, _, storm = _storm(options, spared=["n0"])
    world.run_for(30 * SECOND_US)
    storm.heal()
    dead = {a for a, h in world.hosts.items() if not h.is_up}
    assert world.weather is None
    assert not any(h.paused or h.step_cost_us for h in world.up())
    before = dict(world.faults)
    world.run_for(60 * SECOND_US)
    assert {a for a, h in world.hosts.items() if not h.is_up} == dead
    assert all(world.faults[kind] == before.get(kind, 0) for kind in kinds)


def test_partitions_end_by_themselves_and_leave_machines_alone():
    world, _, _ = _storm(_options("partition"))
    world.run_for(2 * SECOND_US)
    assert world.weather.cut == {(0, 1), (1, 0)}
    assert len(world.up()) == 4


def test_newcomers_are_introduced():
    world, scenario, _ = _storm(_options("join"))
    world.run_for(5 * SECOND_US)
    assert scenario.admitted == [a for a in world.hosts if a.startswith("j")] != []


def test_clocks_are_skewed_where_drawn_and_stay_the_same():
    options = _options(skew=True)
    assert skewed_clock(options, "n1") == skewed_clock(options, "n1") != skewed_clock(options, "n2")
    assert skewed_clock(replace(options, skew=False), "n1") == Clock()
    world, _, _ = _storm(options)
    assert world.faults["skew"] == 4
