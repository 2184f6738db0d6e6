"""Sub-queries without an equality: planned so that not all pairs are looked at, and right."""

from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.runner import check_against_reference, reference_engine
from tests.drawn import examples
from tests.engine.shared.adapter import Collect, push, shared_engine

from thalweg.cql import compile_script
from thalweg.engine.arrivals import Arrival
from thalweg.engine.reference import Options
from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.query import compile_query
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.state.runs import PLANS
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick.executors import InProcess

STREAMS = """
CREATE STREAM S (k INTEGER, v BIGINT) TIMESTAMP BY ts BIGINT;
CREATE STREAM T (k INTEGER, w BIGINT) TIMESTAMP BY ts BIGINT;
"""


def has_join_by_pairs(text: str) -> bool:
    """Whether some join has neither a key nor an input of one row."""
    (query,) = compile_script(f"{STREAMS} CREATE QUERY q AS {text};").queries
    return any(
        isinstance(op, ph.Join) and not op.keys and not any(map(_has_one_row, op.inputs))
        for op in ph.walk(compile_query(query.plan))
    )


def _has_one_row(op: ph.AnyOp) -> bool:
    """An aggregate without groups, or the distinct values of a constant."""
    while isinstance(op, ph.Exchange | ph.Distinct):
        op = op.input
    if isinstance(op, ph.Aggregate):
        return not op.keys
    return isinstance(op, ph.Map) and all(not hasattr(e, "index") for e in op.exprs)


@pytest.mark.parametrize(
    "predicate",
    [
        *("k NOT IN (SELECT k FROM T [Now])", "k IN (SELECT k FROM T [Now])"),
        *(
            "(k IN (SELECT k FROM T [Range 3])) IS NULL",
            "v < 3 OR k NOT IN (SELECT k FROM T [Now])",
        ),
        "k NOT IN (SELECT k FROM T [Now] WHERE T.w = S.v)",
        "(k, v) NOT IN (SELECT k, w FROM T [Now])",
        *(f"EXISTS (SELECT 1 FROM T [Now] WHERE T.k {op} S.k)" for op in ("<", ">=", "<>")),
        "NOT EXISTS (SELECT 1 FROM T [Now] WHERE T.k > S.k AND T.w = S.v AND T.w > 2 AND S.k > 1)",
        "EXISTS (SELECT 1 FROM T [Now] WHERE T.k = S.k OR T.w < S.v)",
    ],
)
def test_no_pairs_are_looked_at(predicate):
    text = f"SELECT v FROM S [Range 3] WHERE {predicate}"
    assert not has_join_by_pairs(text)
    assert compile_script(f"{STREAMS} CREATE QUERY q AS {text};").warnings == ()


def test_two_inequalities_take_all_pairs():
    """Such a sub-query is warned about when it is submitted."""
    text = (
        "SELECT v FROM S [Now] WHERE EXISTS (SELECT 1 FROM T [Now] WHERE T.k < S.k AND T.w > S.v)"
    )
    assert has_join_by_pairs(text)


COMPARISONS = st.builds(
    "{} {} {}".format,
    st.sampled_from(["S.k", "S.v", "S.v + 1", "T.k", "2"]),
    st.sampled_from(["=", "<", "<=", ">", ">=", "<>"]),
    st.sampled_from(["T.k", "T.w", "T.w + S.v", "S.k"]),
)
CONDITIONS = st.lists(COMPARISONS, min_size=1, max_size=3).flatmap(
    lambda cs: st.sampled_from([" AND ", " OR "]).map(lambda by: by.join(f"({c})" for c in cs))
)
WINDOWS = st.sampled_from(["[Now]", "[Range 2]", "[Rows 2]", "[Range 4 Slide 2]", ""])
PREDICATES = st.one_of(
    st.builds(
        "{}EXISTS (SELECT 1 FROM T {} WHERE {})".format,
        st.sampled_from(["", "NOT "]),
        WINDOWS,
        CONDITIONS,
    ),
    st.builds(
        "(S.k, S.v) {}IN (SELECT T.k, T.w FROM T {} WHERE {})".format,
        st.sampled_from(["", "NOT "]),
        WINDOWS,
        st.just("T.w >= 0") | COMPARISONS,
    ),
    st.builds(
        "{} {}IN (SELECT {} FROM T {} WHERE {})".format,
        st.sampled_from(["S.k", "S.v - 1"]),
        st.sampled_from(["", "NOT "]),
        st.sampled_from(["T.k", "T.w"]),
        WINDOWS,
        st.just("T.w >= 0") | CONDITIONS,
    ),
)
ROWS = st.lists(st.tuples(st.none() | st.integers(0, 3), st.none() | st.integers(0, 3)), max_size=6)


def arrivals(rows: list[tuple]) -> list[Arrival]:
    return [Arrival(0, 1 + i // 2, i, row, "+") for i, row in enumerate(rows)]


@settings(max_examples=examples(12), suppress_health_check=list(HealthCheck))
@given(PREDICATES, WINDOWS, ROWS, ROWS, st.sampled_from([1, 2, 100]), st.sampled_from([1, 2]))
def test_drawn_sub_queries_give_what_the_reference_gives(
    predicate, window, left, right, tuples_per_tick, tasks
):
    queries = (
        f"SELECT S.v FROM S {window} WHERE {predicate}",
        f"SELECT S.v FROM S {window} WHERE S.v = 1 OR NOT ({predicate})",
    )
    text = "".join(f"CREATE QUERY q{i} AS {q};" for i, q in enumerate(queries))
    script = compile_script(STREAMS + text)
    inputs = {"S": arrivals(left), "T": arrivals(right)}
    engine = partial(shared_engine, tuples_per_tick=tuples_per_tick, executor=InProcess(tasks))
    check_against_reference(engine, script.catalog, script.queries, inputs)


@settings(max_examples=examples(10), suppress_health_check=list(HealthCheck))
@given(CONDITIONS, WINDOWS, WINDOWS, ROWS, ROWS, st.sampled_from([1, 2, 100]))
def test_drawn_left_joins_give_what_the_reference_gives(on, first, second, left, right, per_tick):
    text = f"SELECT S.v, T.w FROM S {first} LEFT JOIN T {second} ON {on}"
    script = compile_script(f"{STREAMS} CREATE QUERY q AS {text};")
    inputs = {"S": arrivals(left), "T": arrivals(right)}
    engine = partial(shared_engine, tuples_per_tick=per_tick)
    check_against_reference(engine, script.catalog, script.queries, inputs)


def test_a_query_keeps_the_plan_with_which_it_began(tmp_path):
    """State is named after operators: another plan would begin with none."""
    text = "SELECT v FROM S [Range 5] WHERE k NOT IN (SELECT k FROM T [Range 5])"
    script = compile_script(f"{STREAMS} CREATE QUERY q AS {text};")
    store = Store(tmp_path)  # as an earlier version would have left it
    with store.transaction() as db:
        db.execute("INSERT INTO numbers VALUES (?, ?)", (PLANS, 1 << 40))
    store.close()
    rows = [(i % 3, i) for i in range(8)]
    inputs = {"S": arrivals(rows), "T": arrivals([(1, 0), (2, 1), (1, 2), (0, 3)])}
    outlet = Collect()
    plans = []
    for part in (slice(0, 3), slice(3, None)):
        engine = SharedEngine(tmp_path, outlet=outlet, durable=False)
        for stream in script.catalog.streams():
            engine.add_stream(stream)
        engine.add_queries(script.queries)
        plans.append(engine.roster.queries["q"].output)
        for stream in script.catalog.streams():
            push(engine, stream, inputs[stream.name][part])
            if part.stop is None:
                engine.finish(stream.name)
        engine.run_to_end()
        engine.close()
        store = Store(tmp_path)
        with store.transaction() as db:
            db.execute("DELETE FROM numbers WHERE name = ?", (PLANS,))
        store.close()
    (query,) = script.queries
    assert plans[0] == plans[1] != compile_query(query.plan)
    assert (
        outlet.results["q"]
        == reference_engine(script.catalog, script.queries, inputs, Options())["q"]
    )
