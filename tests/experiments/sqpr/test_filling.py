import numpy as np
import pytest

from thalweg.experiments.sqpr.filling import bound, cpu_share, filling, host_loads
from thalweg.placement.deployment import deployment, nothing
from thalweg.placement.sqpr.workload import Workload, make_problem
from thalweg.placement.strategy import Decision, Options

PROBLEM = make_problem(Workload(hosts=4, base_streams=12, queries=30), 1)


def quiet(_):
    pass


def test_every_submission_is_noted():
    filled = filling("heuristic", note_load=True)(PROBLEM, quiet)
    assert filled.submitted.tolist() == list(range(1, 31))
    assert np.all(np.diff(filled.admitted) >= 0)
    assert filled.admitted_in_all == filled.deployment.admitted
    assert filled.admitted_after(10) == filled.admitted[9]
    assert filled.admitted_after(0) == 0.0
    assert filled.cpu_share[0] == 0.0
    assert 0 < filled.cpu_share[-1] <= cpu_share(PROBLEM, filled.deployment) <= 1.0 + 1e-9


def test_batches_are_submissions():
    filled = filling("sqpr", Options(batch=8, work_limit=0))(PROBLEM, quiet)
    assert filled.submitted.tolist() == [8, 16, 24, 30]
    assert filled.admitted_after(20) == filled.admitted[1]


def test_the_aggregate_host_is_judged_by_its_own_problem():
    assert filling("aggregate-host")(PROBLEM, quiet).admitted_in_all > 0


def test_the_bound_is_drawn_like_a_planner():
    drawn = bound(PROBLEM, quiet)
    assert drawn.admitted_after(1) == 1.0
    assert drawn.admitted_in_all >= filling("heuristic")(PROBLEM, quiet).admitted_in_all


class Cheat:
    """Admits what it does not deploy, or deploys what can't run."""

    def __init__(self, deployed):
        self._deployed = deployed

    def submit(self, queries):
        return Decision(tuple(queries))

    def deployment(self):
        return self._deployed


@pytest.mark.parametrize(
    ("deployed", "says"),
    [
        (nothing(30), "dropped 30 admitted queries"),
        (deployment(30, serves={0: 0}), "can't run: demand"),
    ],
)
def test_a_planner_that_cheats_ends_the_experiment(deployed, says):
    with pytest.raises(RuntimeError, match=says):
        filling(lambda problem, options: Cheat(deployed))(PROBLEM, quiet)


def test_loads_of_hosts():
    cpu, bps = host_loads(PROBLEM, filling("heuristic")(PROBLEM, quiet).deployment)
    assert cpu.shape == bps.shape == (4,)
    assert 0 < cpu.max() <= 1 + 1e-9
