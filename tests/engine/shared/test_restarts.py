"""An engine that is closed and opened again between ticks goes on as if nothing had happened."""

import tempfile
from itertools import islice
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.generators import Workload, workloads
from tests.conformance.runner import compare
from tests.drawn import examples
from tests.engine.shared.adapter import WAYS, Collect, divided, push

from thalweg.engine import reference
from thalweg.engine.shared.engine import SharedEngine


@settings(
    max_examples=examples(6),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    workloads(queries=2),
    st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=3, max_size=8),
    st.sampled_from(WAYS),
)
def test_restarts_between_ticks_of_any_size_do_not_show(
    workload: Workload, ticks: list[tuple[int, bool]], way: str
):
    script = workload.script()
    streams = {s.name: s for s in script.catalog.streams()}
    outlet = Collect()

    def opened(folder: str) -> SharedEngine:
        engine = SharedEngine(Path(folder), outlet=outlet, durable=False, **divided(way))
        for stream in streams.values():
            engine.add_stream(stream)
        engine.add_queries(script.queries)
        return engine

    with tempfile.TemporaryDirectory() as folder:
        engine = opened(folder)
        for name, arrivals in workload.inputs.items():
            partitions = sorted({a.partition for a in arrivals})
            engine.landing.declare(streams[name], partitions)
        waiting = {name: iter(arrivals) for name, arrivals in workload.inputs.items()}
        for size, restarts in [*ticks, (1_000, True)]:
            for name, arrivals in waiting.items():
                push(engine, streams[name], list(islice(arrivals, size)))
            engine.run_to_end()
            if restarts:
                engine.close()
                engine = opened(folder)
        for name in streams:
            engine.finish(name)
        engine.run_to_end()
        engine.close()
    for query in script.queries:
        expected = reference.evaluate(query.plan, workload.inputs)
        report = compare(query, expected, outlet.results.get(query.name, []))
        assert not report, report
