"""Every scenario under a few dozen seeds (in `make soak` 10,000), and all that ever failed."""

import pytest
from tests.sim.scenarios.swarm import failures, failures_under_every_fault, kept_seeds

from thalweg.sim.scenarios.registry import SCENARIOS


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_promises_hold_under_swarm_drawn_faults(name):
    kind = SCENARIOS[name]
    problems, faults = failures_under_every_fault(kind, kind.suite_seeds)
    again = "\n".join(f"thalweg simulate {name} --seed {s}: {p}" for s, p in problems.items())
    assert not problems, again
    missing = [fault for fault in kind.faults if not faults[fault]]
    assert not missing, "faults that the scenario allows and no seed met"


@pytest.mark.parametrize("name", SCENARIOS)
def test_seeds_that_once_failed_hold_now(name):
    problems, _ = failures(SCENARIOS[name], kept_seeds(name))
    assert not problems
