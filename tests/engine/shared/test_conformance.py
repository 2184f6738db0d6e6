"""The shared engine gives the reference's changelog, whatever the ticks and however many tasks."""

from functools import partial

import pytest
from tests.conformance.case_files import Case, all_cases
from tests.conformance.runner import check
from tests.engine.shared.adapter import shared_engine

from thalweg.engine.shared.executors import InProcess

CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_tuples_in_one_tick(case: Case):
    check(shared_engine, case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_tuple_of_each_stream_per_tick(case: Case):
    check(partial(shared_engine, tuples_per_tick=1), case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_three_tasks_that_exchange_rows(case: Case):
    check(partial(shared_engine, tuples_per_tick=2, executor=InProcess(3)), case)
