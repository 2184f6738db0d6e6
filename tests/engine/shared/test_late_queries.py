"""Queries that are submitted while streams flow give the reference's result from their start on."""

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.generators import Workload, workloads
from tests.drawn import examples
from tests.engine.shared.adapter import WAYS, divided
from tests.engine.shared.flowing import ALWAYS, NEVER, Flowing

from thalweg.engine.shared.compile.history import looks_at_history
from thalweg.plan.nodes import base_streams


@settings(
    max_examples=examples(6),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    workloads(queries=3, with_history=True),
    st.tuples(st.integers(0, 3), st.integers(0, 6), st.integers(0, 6)),
    st.sets(st.integers(0, 6), max_size=2),
    st.integers(1, 3),
    st.sampled_from(WAYS),
    st.sampled_from([NEVER, ALWAYS]),
)
def test_late_queries_start_from_what_is_there(
    workload: Workload,
    arrives_at: tuple[int, int, int],
    restarts: set[int],
    tuples_per_tick: int,
    way: str,
    changes: int,
):
    with tempfile.TemporaryDirectory() as folder:
        running = Flowing(Path(folder), workload, **divided(way), changes_before_reducing=changes)
        queries = running.script.queries
        tick = 0
        while running.waiting or tick <= max(arrives_at):
            running.submit([q for q, at in zip(queries, arrives_at, strict=True) if at == tick])
            if tick in restarts:
                running.engine.close()
                running.open()
            running.flow(tuples_per_tick)
            tick += 1
        running.check()
        running.engine.close()


@settings(
    max_examples=examples(6),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    workloads(queries=2),
    st.integers(0, 3),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from([NEVER, ALWAYS]),
)
def test_a_query_that_is_dropped_and_created_again_finds_relations_whole(
    workload: Workload, dropped_at: int, pause: int, restarts: bool, changes: int
):
    """Nobody may have read the relation in between; what it holds is what it holds."""
    with tempfile.TemporaryDirectory() as folder:
        running = Flowing(Path(folder), workload, changes_before_reducing=changes)
        queries = list(running.script.queries)
        running.submit(queries)
        tick = 0
        while running.waiting or tick <= dropped_at + pause:
            if tick == dropped_at:
                for query in queries:
                    running.drop(query)
            if restarts:
                running.engine.close()
                running.open()
            if tick == dropped_at + pause:
                running.submit(queries)
            running.flow(2)
            tick += 1
        for query in queries:
            begun = running.engine.roster.queries[query.name]
            for stream in base_streams(query.plan):
                looks = begun.started is None or looks_at_history(query.plan, stream.name)
                if stream.is_relation and (changes == NEVER or not looks):
                    assert stream.name not in dict(begun.horizons)
        running.check()
        running.engine.close()
