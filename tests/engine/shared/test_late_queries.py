"""Queries that are submitted while streams flow give the reference's result from their start on."""

import tempfile
from itertools import islice
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.generators import Workload, workloads
from tests.conformance.runner import compare
from tests.engine.shared.adapter import WAYS, Collect, divided, push

from thalweg.engine import reference
from thalweg.engine.shared.engine import SharedEngine


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    workloads(queries=3),
    st.tuples(st.integers(0, 3), st.integers(0, 6), st.integers(0, 6)),
    st.integers(1, 3),
    st.sampled_from(WAYS),
)
def test_late_queries_start_from_what_is_there(
    workload: Workload, arrives_at: tuple[int, int, int], tuples_per_tick: int, way: str
):
    script = workload.script()
    outlet = Collect()
    with tempfile.TemporaryDirectory() as folder:
        engine = SharedEngine(Path(folder), outlet=outlet, durable=False, **divided(way))
        streams = {s.name: s for s in script.catalog.streams()}
        for stream in streams.values():
            engine.add_stream(stream)
            partitions = {a.partition for a in workload.inputs[stream.name]}
            engine.landing.declare(stream, sorted(partitions))
        waiting = {name: iter(arrivals) for name, arrivals in workload.inputs.items()}
        tick = 0
        while waiting or tick <= max(arrives_at):
            engine.add_queries(
                q for q, at in zip(script.queries, arrives_at, strict=True) if at == tick
            )
            for name in list(waiting):
                chunk = list(islice(waiting[name], tuples_per_tick))
                push(engine, streams[name], chunk)
                if not chunk:
                    engine.finish(name)
                    del waiting[name]
            engine.run_to_end()
            tick += 1
        for query in script.queries:
            begun = engine.roster.queries[query.name]
            expected = reference.evaluate(
                query.plan, workload.inputs, start=begun.started, horizons=dict(begun.horizons)
            )
            report = compare(query, expected, outlet.results.get(query.name, []))
            assert not report, f"{begun}\n{report}"
        engine.close()
