"""CQL queries become sets of substreams, cut where their ranges begin and end."""

from __future__ import annotations

import numpy as np
import pytest

from thalweg.cql.compile import compile_script
from thalweg.placement.arrays import floats
from thalweg.placement.cosmos.interests import Cuts, problem_of_interests
from thalweg.placement.cosmos.problems import pose
from thalweg.placement.cosmos.strategies import COSMOS_HIERARCHICAL
from thalweg.placement.from_cql.problem import Measured
from thalweg.placement.problem import Hosts, Problem
from thalweg.placement.strategy import Options
from thalweg.placement.verify import verify

STREAMS = """
CREATE STREAM Trades (symbol TEXT, price INT, size INT, ts BIGINT) TIMESTAMP BY ts;
CREATE STREAM News (symbol TEXT, weight DOUBLE, ts BIGINT) TIMESTAMP BY ts;
"""
MEASURED = Measured({"Trades": 0, "News": 1}, {"Trades": 1200.0, "News": 300.0})


def posed(*selects: str, measured: Measured = MEASURED) -> Problem:
    creates = "".join(f"CREATE QUERY q{i} AS {text};\n" for i, text in enumerate(selects))
    script = compile_script(STREAMS + creates)
    cpu, many = floats(np.ones(3)), floats(np.full(3, np.inf))
    latency = floats([[0, 5, 9], [5, 0, 7], [9, 7, 0]])
    hosts = Hosts(("h0", "h1", "h2"), cpu, many, many, None, latency)
    return problem_of_interests(hosts, script.queries, measured)


def inputs(problem: Problem, query: int) -> list[str]:
    streams = problem.operators.inputs[query].tolist()
    return sorted(problem.streams.names[s] for s in streams)


def test_ranges_cut_a_stream_and_a_query_wants_what_lies_in_its_own() -> None:
    problem = posed(
        "SELECT * FROM Trades [NOW] WHERE price < 10",
        "SELECT * FROM Trades [NOW] WHERE price >= 5 AND price < 20",
    )
    assert inputs(problem, 0) == ["Trades[price (-∞, 5)]", "Trades[price [5, 10)]"]
    assert inputs(problem, 1) == ["Trades[price [10, 20)]", "Trades[price [5, 10)]"]


def test_open_and_closed_ends_are_told_apart() -> None:
    problem = posed(
        "SELECT * FROM News [NOW] WHERE weight <= 10.0",
        "SELECT * FROM News [NOW] WHERE weight < 10.0",
        "SELECT * FROM News [NOW] WHERE weight = 10.0",
    )
    low, ten = "News[weight (-∞, 10.0)]", "News[weight = 10.0]"
    assert [inputs(problem, q) for q in range(3)] == [[low, ten], [low], [ten]]


def test_integers_have_nothing_between_neighbours() -> None:
    problem = posed(
        "SELECT * FROM Trades [NOW] WHERE price <= 9", "SELECT * FROM Trades [NOW] WHERE price > 9"
    )
    assert inputs(problem, 0) == ["Trades[price (-∞, 10)]"]
    assert inputs(problem, 1) == ["Trades[price [10, ∞)]"]


def test_a_query_without_a_range_wants_nulls_too() -> None:
    problem = posed("SELECT * FROM Trades [NOW] WHERE price < 10", "SELECT size FROM Trades [NOW]")
    assert inputs(problem, 1) == [
        "Trades[price (-∞, 10)]",
        "Trades[price NULL]",
        "Trades[price [10, ∞)]",
    ]


def test_a_join_wants_of_each_stream_what_it_limits() -> None:
    problem = posed(
        "SELECT T.price FROM Trades [RANGE 5 SECONDS] T, News [NOW] N "
        "WHERE T.symbol = N.symbol AND T.price > 100 AND N.weight > 3.0"
    )
    assert inputs(problem, 0) == ["News[weight (3.0, ∞)]", "Trades[price [101, ∞)]"]


def test_a_stream_is_cut_along_the_column_that_is_limited_most() -> None:
    problem = posed(
        "SELECT * FROM Trades [NOW] WHERE size > 3",
        "SELECT * FROM Trades [NOW] WHERE price > 4",
        "SELECT * FROM Trades [NOW] WHERE price > 5",
    )
    assert inputs(problem, 1) == ["Trades[price [5, 6)]", "Trades[price [6, ∞)]"]
    assert "Trades[price NULL]" in inputs(problem, 0)  # whatever its price


def test_rates_are_equal_parts_unless_they_were_measured() -> None:
    text = "SELECT * FROM Trades [NOW] WHERE price < 10"
    problem = posed(text, "SELECT * FROM Trades [NOW] WHERE price >= 10")
    assert problem.streams.rate_bps[problem.operators.inputs[0]].tolist() == [600.0]
    known = {**MEASURED.rate_bps, "Trades[price (-∞, 10)]": 50.0, "q0": 7.0}
    measured = posed(text, measured=Measured(MEASURED.homes, known))
    assert measured.streams.rate_bps[measured.operators.inputs[0]].tolist() == [50.0]
    assert measured.streams.rate_bps[measured.queries.wanted[0]] == 7.0


def test_a_query_without_a_normal_form_wants_all_of_its_streams() -> None:
    problem = posed(
        "SELECT * FROM Trades [ROWS 5] WHERE price < 10",
        "SELECT * FROM Trades [NOW] WHERE price < 10",
    )
    assert "Trades[price NULL]" in inputs(problem, 0)


def test_equal_queries_have_one_result() -> None:
    text = "SELECT price FROM Trades [NOW] WHERE price < 10"
    problem = posed(text, text, text.replace("10", "11"))
    assert problem.queries.wanted[0] == problem.queries.wanted[1] != problem.queries.wanted[2]


def test_an_unknown_stream_is_named() -> None:
    with pytest.raises(ValueError, match="stream News: its home and its rate"):
        posed("SELECT * FROM News [NOW]", measured=Measured({"Trades": 0}, {"Trades": 1.0}))


def test_a_stream_that_nobody_limits_is_one_substream() -> None:
    assert Cuts("News", None).names == ["News"]
    assert inputs(posed("SELECT * FROM News [NOW]"), 0) == ["News"]


def test_real_queries_are_placed_and_the_deployment_is_sound() -> None:
    selects = [
        f"SELECT * FROM Trades [NOW] WHERE price >= {10 * i} AND price < {10 * i + 25}"
        for i in range(30)
    ]
    problem = posed(*selects)
    posed_ = pose(problem)
    assert posed_.system.queries.interests.shape[0] == 30
    outcome = COSMOS_HIERARCHICAL.plan(problem, Options())
    assert outcome.deployment.admitted == 30
    assert verify(problem, outcome.deployment) == ()
