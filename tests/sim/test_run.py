"""A run: two phases, a verdict, and the same again for the same seed."""

import os
import subprocess
import sys

import pytest

from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.stack import Stack
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.run import run
from thalweg.sim.scenario import Scenario
from thalweg.sim.scenarios.membership import MembershipScenario
from thalweg.sim.scenarios.registry import SCENARIOS, UnknownScenario, scenario_named


class Quiet(Scenario):
    """Nothing is promised, so nothing is broken."""

    name, about = "quiet", "nothing"
    faults = ()

    def build(self, address):
        return Stack([Membership()])

    def admit(self, world, address):
        world.call(address, "membership", Join(("n1",)))

    def unsettled(self, world):
        return None


def test_a_run_that_keeps_its_promise_has_no_problem():
    outcome = run(Quiet, 1)
    assert outcome.problem is None
    assert outcome.settled_after_us == 0
    assert outcome.simulated_us == 30 * SECOND_US
    assert outcome.sent["membership", "Ping"] > 0


def test_a_broken_promise_is_told_with_its_time():
    class Broken(Quiet):
        def broken(self, world):
            return "the sky fell" if world.now_us > 7 * SECOND_US else None

    assert run(Broken, 1).problem == "at 7.500 s: the sky fell"


def test_what_never_settles_is_a_problem():
    class Restless(Quiet):
        def unsettled(self, world):
            return "still busy" if world.now_us % (2 * SECOND_US) else None

    problem = run(Restless, 1).problem
    assert problem == "at 85.000 s: not settled 60 s after the healing: still busy"


def test_a_mistake_in_a_protocol_is_a_finding():
    class Careless(Quiet):
        def admit(self, world, address):
            world.call(address, "membership", Join(None))

    problem = run(Careless, 1).problem
    assert problem.startswith("at 0.000 s: TypeError in _join (membership.py:")


def test_nodes_can_be_chosen():
    assert run(Quiet, 1, nodes=5).options.nodes == 5
    with pytest.raises(ValueError, match="0 nodes: a network has at least one"):
        run(Quiet, 1, nodes=0)


def test_seeds_differ_and_repeat():
    first = run(MembershipScenario, 3)
    assert run(MembershipScenario, 3) == first
    assert run(MembershipScenario, 4).digest != first.digest


DIGESTS = """
from thalweg.sim.run import run
from thalweg.sim.scenarios.registry import SCENARIOS
for kind in SCENARIOS.values():
    for seed in range(2):
        print(kind.name, seed, run(kind, seed).digest)
"""


def test_a_seed_has_one_trace_under_every_hash_seed():
    """Iterating over a set of strings anywhere would show here."""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", DIGESTS],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == 2 * len(SCENARIOS)


def test_an_unknown_scenario_names_the_nearest():
    with pytest.raises(UnknownScenario, match="did you mean membership"):
        scenario_named("membreship")
    with pytest.raises(UnknownScenario, match="there are membership"):
        scenario_named("xyz")
