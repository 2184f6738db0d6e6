"""Many seeds together."""

import pytest

from thalweg.cli.outcomes import show_tallies
from thalweg.sim.run import run
from thalweg.sim.scenarios.membership import MembershipScenario
from thalweg.sim.scenarios.registry import SCENARIOS, UnknownScenario
from thalweg.sim.soak import Tally, soak


def test_sums_are_those_of_the_runs():
    heard = []

    def progress(outcome, done, of):
        heard.append((outcome.options.seed, done, of))

    [tally] = soak(["membership"], 5, 3, progress=progress)
    outcomes = [run(MembershipScenario, seed) for seed in (5, 6, 7)]
    assert tally.seeds == 3
    assert tally.steps == sum(o.steps for o in outcomes)
    assert tally.simulated_us == sum(o.simulated_us for o in outcomes)
    assert tally.faults["join"] == sum(o.faults["join"] for o in outcomes)
    assert tally.failed == {}
    assert heard == [(5, 1, 3), (6, 2, 3), (7, 3, 3)]


def test_processes_change_nothing():
    assert soak(["membership"], 0, 4, jobs=2) == soak(["membership"], 0, 4)


def test_failing_seeds_are_kept():
    class Never(MembershipScenario):
        def unsettled(self, world):
            return "never"

    tally = Tally("membership")
    tally.add(run(Never, 9))
    assert list(tally.failed) == [9]


def test_an_unknown_scenario_is_refused_before_anything_runs():
    with pytest.raises(UnknownScenario):
        soak(["membership", "nothing"], 0, 1_000_000)


def test_a_table_of_steps_and_faults_counts_seeds_and_shows_what_none_met():
    class Meets(MembershipScenario):
        cells = (("join", "crash"), ("join", "pause"))

        def admit(self, world, address):
            super().admit(world, address)
            self.met.add(("join", "crash"))

    tally = Tally("membership")
    for seed in (1, 2):
        tally.add(run(Meets, seed))
    assert tally.met == {("join", "crash"): 2}
    [whole] = soak(["moves"], 0, 1)
    assert len(whole.met) == len(SCENARIOS["moves"].cells)


def test_which_fault_has_met_which_message_is_counted_in_seeds():
    tallies = soak(["membership"], 0, 30)
    [tally] = tallies
    assert {fault for _, fault in tally.encounters} >= {"loss", "crash after it", "reached nobody"}
    assert max(tally.encounters.values()) <= 30
    one = run(MembershipScenario, 3)
    assert all(tally.encounters[cell] >= 1 for cell in one.struck)


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_sums_of_every_scenario_can_be_shown(name, capsys):
    show_tallies(soak([name], 0, 1))
    assert name in capsys.readouterr().out
