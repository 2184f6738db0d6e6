"""What a result holds is what the reference says, however few ticks are retained."""

import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.generators import Workload, workloads
from tests.drawn import examples
from tests.engine.shared.adapter import divided
from tests.engine.shared.flowing import ALWAYS, NEVER, Flowing
from tests.engine.shared.sharing_workloads import SharedWorkload, shared_workloads

from thalweg.engine import reference
from thalweg.engine.shared.groups.cost_model import Sharing
from thalweg.plan.catalog import QueryDef
from thalweg.plan.windows import BEGINNING


def expected(running: Flowing, query: QueryDef, at: int) -> Counter:
    begun = running.engine.roster.queries[query.name]
    changes = reference.evaluate(
        query.plan,
        running.workload.inputs,
        start=begun.started,
        horizons=dict(begun.horizons),
    )
    bag: Counter = Counter()
    for change in changes:
        if change.ts <= at:
            bag[change.row] += 1 if change.op == "+" else -1
    return +bag


def check_contents(running: Flowing) -> None:
    for query in running.standing:
        if query.plan.is_stream:
            continue
        at, rows = running.engine.content(query)
        if at < BEGINNING:
            assert not rows.height
            continue
        found = Counter(rows.rows())
        assert found == expected(running, query, at), f"{query.text} at {at}"


@settings(
    max_examples=examples(6),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    workloads(queries=4),
    st.lists(st.integers(0, 4), min_size=4, max_size=4),
    st.sampled_from([1, 2, 1_000]),
    st.sampled_from([NEVER, ALWAYS]),
    st.sets(st.integers(0, 6), max_size=2),
    st.sampled_from(["one task", "rows"]),
)
def test_the_content_of_a_result_is_the_references(
    workload: Workload,
    arrives_at: list[int],
    retained_ticks: int,
    changes: int,
    restarts: set[int],
    way: str,
):
    with tempfile.TemporaryDirectory() as folder:
        running = Flowing(
            Path(folder),
            workload,
            retained_ticks=retained_ticks,
            changes_before_reducing=changes,
            **divided(way),
        )
        queries = running.script.queries
        tick = 0
        while running.waiting or tick <= max(arrives_at):
            running.submit([q for q, at in zip(queries, arrives_at, strict=True) if at == tick])
            if tick in restarts:
                running.engine.close()
                running.open()
            running.flow(2)
            check_contents(running)
            tick += 1
        running.check()
        running.engine.close()


@settings(
    max_examples=examples(6),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    shared_workloads(),
    st.sampled_from([1, 2]),
    st.integers(1, 3),
    st.sets(st.integers(1, 6), max_size=1),
)
def test_the_content_of_a_members_result_is_the_references(
    workload: SharedWorkload, retained_ticks: int, tuples: int, restarts: set[int]
):
    """Members move between groups, and are read or not, while old ticks go."""
    with tempfile.TemporaryDirectory() as folder:
        running = Flowing(
            Path(folder),
            workload,
            retained_ticks=retained_ticks,
            sharing=Sharing.WHEREVER_POSSIBLE,
        )
        queries = running.script.queries
        tick = 0
        while running.waiting or tick <= 5:
            for query, (_, gone) in zip(queries, workload.life, strict=True):
                if gone == tick:
                    running.drop(query)
            running.submit(
                [q for q, (born, _) in zip(queries, workload.life, strict=True) if born == tick]
            )
            if tick in restarts:
                running.engine.close()
                running.open()
            running.flow(tuples)
            check_contents(running)
            tick += 1
        running.check()
        running.engine.close()
