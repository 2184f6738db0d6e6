"""The shared engine gives the reference's changelog, whatever the ticks and however many tasks."""

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.case_files import Case, all_cases
from tests.conformance.generators import Workload, values, workloads
from tests.conformance.runner import check, check_against_reference
from tests.drawn import examples, in_turn
from tests.engine.shared.adapter import divided, shared_engine

from thalweg.cql import compile_script
from thalweg.engine.shared.tick.executors import InProcess

CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_tuples_in_one_tick(case: Case):
    check(shared_engine, case)


@pytest.mark.parametrize("case", in_turn(CASES, 0, of=3), ids=lambda case: case.name)
def test_a_tuple_of_each_stream_per_tick(case: Case):
    check(partial(shared_engine, tuples_per_tick=1), case)


@pytest.mark.parametrize("case", in_turn(CASES, 1, of=3), ids=lambda case: case.name)
def test_three_tasks_that_exchange_rows(case: Case):
    check(partial(shared_engine, tuples_per_tick=2, executor=InProcess(3)), case)


@pytest.mark.parametrize("case", in_turn(CASES, 2, of=3), ids=lambda case: case.name)
def test_two_tasks_that_divide_the_queries(case: Case):
    check(partial(shared_engine, tuples_per_tick=1, **divided("runs")), case)


DRAWN = settings(
    max_examples=examples(15),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@DRAWN
@given(
    workloads(queries=2),
    st.sampled_from([1, 2, 3, 1_000]),
    st.sampled_from([1, 1, 2, 3]),
    st.booleans(),
)
def test_drawn_workloads_give_what_the_reference_gives(
    workload: Workload, tuples_per_tick: int, tasks: int, twice: bool
):
    if twice:
        queries = [x for x in workload.text.splitlines() if x.startswith("CREATE QUERY")]
        again = "\n".join(x.replace("CREATE QUERY ", "CREATE QUERY again_") for x in queries)
        workload = replace(workload, text=f"{workload.text}\n{again}")
    script = workload.script()
    engine = partial(shared_engine, tuples_per_tick=tuples_per_tick, executor=InProcess(tasks))
    check_against_reference(engine, script.catalog, script.queries, workload.inputs)


def test_every_function_and_cast_at_its_edges():
    script = compile_script(values.script())
    check_against_reference(shared_engine, script.catalog, script.queries, values.arrivals())
