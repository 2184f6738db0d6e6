"""Many queries over few rows: tasks divide the queries, and state has one writer."""

from __future__ import annotations

from tests.engine.shared.kernels.join.test_prefixes import STREAMS

from thalweg.cql.compile import compile_script
from thalweg.engine.shared.compile.planning import Run, make_plan
from thalweg.engine.shared.tick.plan import Plan
from thalweg.engine.shared.tick.task_assignment import shares
from thalweg.plan.nodes import base_streams

COUNT = "SELECT k, COUNT(*) AS n FROM A [Range 5] GROUP BY k"


def plan_of(*queries: str, streams: str = STREAMS) -> Plan:
    text = "".join(f"CREATE QUERY q{i} AS {q};" for i, q in enumerate(queries))
    script = compile_script(streams + text)
    runs = [
        Run(q.name, (), tuple(sorted(map(str, _names(q)))), 1, None, (), plan=q.plan)
        for q in script.queries
    ]
    return make_plan(runs, {s.name: s for s in script.catalog.streams()}, {})


def _names(query) -> set[str]:  # type: ignore[no-untyped-def]
    return {s.name for s in base_streams(query.plan)}


def filters(count: int) -> list[str]:
    return [f"SELECT v + {i} AS v FROM A [Now] WHERE k = {i}" for i in range(count)]


def test_the_longest_first_each_to_whom_has_least_to_do() -> None:
    plan = plan_of(*filters(5))
    seconds = {"q0": 3.0, "q1": 1.0, "q2": 2.0, "q3": 4.0, "q4": 2.0}
    first, second = shares(plan, 2, seconds, 0)
    assert (set(first), set(second)) == ({"q3", "q4"}, {"q0", "q2", "q1"})


def test_queries_that_were_never_seen_are_dealt_out_evenly() -> None:
    assert [len(s) for s in shares(plan_of(*filters(6)), 3, {}, 0)] == [2, 2, 2]


def test_what_keeps_state_together_stays_together() -> None:
    plan = plan_of(COUNT, COUNT + " HAVING COUNT(*) > 1", *filters(2))
    assert any({"q0", "q1"} <= set(s) for s in shares(plan, 2, {"q0": 1.0, "q1": 1.0}, 0))


def test_a_filter_of_a_base_stream_keeps_nothing_and_binds_nobody() -> None:
    distinct = [f"SELECT DISTINCT v + {i} AS v FROM A [Range 5] WHERE k = 1" for i in range(2)]
    assert len(shares(plan_of(*distinct), 2, {}, 0)) == 2


def test_one_task_is_enough_where_there_is_little_to_do_or_nothing_to_divide() -> None:
    plan = plan_of(*filters(3))
    assert shares(plan, 1, {}, 0) == ()
    assert shares(plan, 2, {"q0": 0.1}, 0.2) == ()
    assert shares(plan_of(COUNT), 2, {"q0": 9.0}, 0.2) == ()


def test_base_relations_are_judged_by_one_task() -> None:
    relation = "CREATE RELATION R (k INTEGER) TIMESTAMP BY at;"
    plan = plan_of("SELECT k FROM R", "SELECT k + 1 AS k FROM R", streams=relation)
    assert shares(plan, 2, {}, 0) == ()
