"""Joins that go in pieces of a few pairs give what they give at once."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.case_files import Case, all_cases
from tests.conformance.generators import Workload, workloads
from tests.conformance.runner import check, check_workload
from tests.drawn import examples
from tests.engine.shared.adapter import shared_engine

from thalweg.engine.shared.kernels.join import join, shared_probe
from thalweg.engine.shared.state import tables
from thalweg.engine.shared.tick.executors import InProcess

CASES = [
    c
    for c in all_cases()
    if c.name.startswith(("joins", "left_joins", "subqueries", "relations", "views", "sets"))
]


@pytest.fixture(scope="module", autouse=True)
def _small_pieces():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "PAIRS_AT_ONCE", 2)
        patch.setattr(join, "COMPACTED_FROM", 3)
        patch.setattr(join, "SHARED_UPTO", 2)
        patch.setattr(shared_probe, "PAIRS_UPTO", 2)
        yield


def test_there_are_cases():
    assert len(CASES) > 50


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_in_pieces(case: Case):
    check(shared_engine, case)


@settings(max_examples=examples(8), suppress_health_check=list(HealthCheck))
@given(workloads(queries=2), st.sampled_from([1, 2]))
def test_drawn_workloads_in_pieces(workload: Workload, tasks: int):
    def engine(*args):
        return shared_engine(*args, executor=InProcess(tasks))

    check_workload(engine, workload)
