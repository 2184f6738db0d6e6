"""CQL queries become problems in which equal work is one stream."""

from __future__ import annotations

import numpy as np
import pytest

from thalweg.cql.compile import compile_script
from thalweg.placement.abstract import abstract_plans
from thalweg.placement.arrays import floats
from thalweg.placement.from_cql.problem import Measured, problem_of_queries
from thalweg.placement.problem import Hosts, Problem
from thalweg.placement.sqpr.planner import Sqpr
from thalweg.placement.verify import verify

STREAMS = """
CREATE STREAM A (k INT, x INT, ts BIGINT) TIMESTAMP BY ts;
CREATE STREAM B (k INT, y INT, ts BIGINT) TIMESTAMP BY ts;
CREATE STREAM C (y INT, z INT, ts BIGINT) TIMESTAMP BY ts;
"""
MEASURED = Measured({"A": 0, "B": 1, "C": 2}, {"A": 1000.0, "B": 2000.0, "C": 500.0})
JOIN = "A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.k = B.k"


def problem_from(*selects: str, measured: Measured = MEASURED) -> Problem:
    creates = "".join(f"CREATE QUERY q{i} AS {text};\n" for i, text in enumerate(selects))
    script = compile_script(STREAMS + creates)
    many = floats(np.full(3, 1e6))
    return problem_of_queries(Hosts(("h0", "h1", "h2"), many, many, many), script.queries, measured)


def wanted(problem: Problem) -> list[int]:
    return problem.queries.wanted.tolist()


def test_a_join_of_three_has_every_order_without_products() -> None:
    problem = problem_from(
        "SELECT A.x, C.z FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS], C [NOW] "
        "WHERE A.k = B.k AND B.y = C.y"
    )
    plans = abstract_plans(problem, wanted(problem)[0])
    joins = [o for o in plans.operators if len(plans.inputs[o]) == 2]
    # AB, BC, then ABC from each; A and C share no condition.
    assert len(joins) == 4


def test_the_order_of_the_from_list_does_not_matter_to_sub_joins() -> None:
    problem = problem_from(
        f"SELECT A.x FROM {JOIN}",
        "SELECT B.y FROM B [RANGE 5 SECONDS], A [RANGE 5 SECONDS] WHERE B.k = A.k",
    )
    joins = [n for n in problem.streams.names if n.startswith("(A [Range")]
    assert len(joins) == 1


def test_equal_queries_are_one_stream_and_others_are_not() -> None:
    problem = problem_from(
        f"SELECT A.x FROM {JOIN}",
        f"SELECT A.x FROM {JOIN}",
        f"SELECT B.y FROM {JOIN}",
        "SELECT A.x FROM A [RANGE 6 SECONDS], B [RANGE 5 SECONDS] WHERE A.k = B.k",
        f"SELECT A.x FROM {JOIN} AND A.x > 3",
    )
    streams = wanted(problem)
    assert streams[0] == streams[1]
    assert len(set(streams)) == 4


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # The same words, but k is A's in one query and B's in the other.
        (
            "SELECT A.k FROM A [NOW], B [NOW] WHERE A.x = B.y",
            "SELECT B.k FROM B [NOW], A [NOW] WHERE A.x = B.y",
        ),
        ("SELECT x FROM A [NOW] WHERE x > 3", "SELECT x FROM A [RANGE 9 SECONDS] WHERE x > 3"),
        ("SELECT x FROM A [NOW] WHERE 1 = 2", "SELECT x FROM A [NOW]"),
        ("SELECT x FROM A [NOW] WHERE x > 3", "SELECT x FROM A [NOW] WHERE x > 4"),
        ("SELECT x FROM A [ROWS 3] WHERE x > 3", "SELECT x FROM A [ROWS 4] WHERE x > 3"),
        ("SELECT ISTREAM x FROM A [NOW]", "SELECT DSTREAM x FROM A [NOW]"),
    ],
)
def test_different_meanings_are_never_one_stream(one: str, other: str) -> None:
    problem = problem_from(one, other)
    assert len(set(wanted(problem))) == 2


def test_a_filter_is_shared_by_windows_over_time() -> None:
    problem = problem_from(
        "SELECT x FROM A [NOW] WHERE x > 3", "SELECT x FROM A [RANGE 9 SECONDS] WHERE x > 3"
    )
    assert [n for n in problem.streams.names if n == "(A : x > 3)"] == ["(A : x > 3)"]


def test_measured_rates_and_cpu_go_before_estimates() -> None:
    text = f"SELECT A.x FROM {JOIN}"
    guessed = problem_from(text)
    join = next(n for n in guessed.streams.names if " ⋈ " in n)
    operator = next(n for n in guessed.operators.names if n.startswith(join))
    known = Measured(MEASURED.homes, {**MEASURED.rate_bps, join: 7.0}, {operator: 3.5})
    problem = problem_from(text, measured=known)
    assert guessed.streams.rate_bps[guessed.streams.names.index(join)] == pytest.approx(300.0)
    assert problem.streams.rate_bps[problem.streams.names.index(join)] == 7.0
    assert problem.operators.cpu[problem.operators.names.index(operator)] == 3.5


def test_grouping_sets_and_sub_queries_are_operators_above_their_inputs() -> None:
    problem = problem_from(
        f"SELECT A.k, COUNT(*) FROM {JOIN} GROUP BY A.k",
        "(SELECT x FROM A [NOW]) UNION ALL (SELECT y FROM B [NOW])",
        "SELECT x FROM A [NOW] WHERE EXISTS (SELECT * FROM B [NOW] WHERE B.k = A.k)",
    )
    planner = Sqpr(problem)
    decision = planner.submit(range(3))
    assert decision.admitted == (0, 1, 2)
    assert verify(problem, planner.deployment()) == ()


def test_a_stream_that_nobody_measured_is_named() -> None:
    with pytest.raises(ValueError, match="stream C: its home and its rate"):
        problem_from("SELECT z FROM C [NOW]", measured=Measured({"A": 0}, {"A": 1.0}))


def test_a_join_of_too_many_streams_is_refused() -> None:
    froms = ", ".join(f"A [NOW] AS a{i}" for i in range(9))
    conditions = " AND ".join(f"a{i}.k = a{i + 1}.k" for i in range(8))
    with pytest.raises(ValueError, match="split it by a view"):
        problem_from(f"SELECT a0.x FROM {froms} WHERE {conditions}")


def test_the_two_sides_of_a_self_join_stay_apart() -> None:
    problem = problem_from(
        "SELECT a.x FROM A [NOW] AS a, A [NOW] AS b WHERE a.k = b.x",
        "SELECT a.x FROM A [NOW] AS a, A [NOW] AS b WHERE a.x = b.k",
    )
    assert len(set(wanted(problem))) == 2
