"""The same engine with Spark as its executor."""

import subprocess
import sys
from functools import partial

import pytest
from tests.conformance.case_files import all_cases
from tests.conformance.runner import check
from tests.engine.shared.adapter import shared_engine

from thalweg.engine.session import spark_session
from thalweg.engine.shared.tick.executors import OnSpark

CASES = all_cases()[::20]  # a cut through all topics; every case runs in-process
CLUSTER_CASES = CASES[::3]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("tasks", [1, 2])
def test_spark_runs_what_this_process_runs(spark, case, tasks):
    executor = OnSpark(spark.sparkContext, tasks)
    check(partial(shared_engine, tuples_per_tick=4, executor=executor), case)


@pytest.mark.timeout(300)
def test_executors_in_processes_of_their_own_give_the_same_rows():
    # One process has one Spark session, and this one has its own already.
    run = [sys.executable, "-m", "tests.engine.shared.test_on_spark"]
    done = subprocess.run(run, capture_output=True, text=True, timeout=290, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == str(len(CLUSTER_CASES))


def run_cases_on_a_local_cluster() -> None:
    with spark_session("local-cluster[2,1,1024]") as spark:
        executor = OnSpark(spark.sparkContext, tasks=2)
        for case in CLUSTER_CASES:
            check(partial(shared_engine, tuples_per_tick=1_000, executor=executor), case)
    sys.stdout.write(f"cases: {len(CLUSTER_CASES)}\n")


if __name__ == "__main__":
    run_cases_on_a_local_cluster()
