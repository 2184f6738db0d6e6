"""Problems and deployments survive their JSON form, and bad ones are told where they are bad."""

import copy

import msgspec
import numpy as np
import pytest
from tests.placement.problems import TWO_WAY, problem_of, two_way

from thalweg.placement.deployment import deployment
from thalweg.placement.documents import (
    read_deployment,
    read_problem,
    write_deployment,
    write_problem,
)
from thalweg.placement.problem import ProblemError
from thalweg.placement.strategies import find_strategy
from thalweg.placement.strategy import Options


def test_a_problem_survives_the_round_trip() -> None:
    full = copy.deepcopy(TWO_WAY)
    full["hosts"][0]["cpu"] = None
    full["link_bps"] = 50
    full["links"] = [{"from": "h0", "to": "h2", "bps": 7}]
    full["latency_ms"] = [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
    full["queries"][1] |= {"proxy": "h2", "latency_bound_ms": 9}
    full["operators"][0] |= {"pinned": "h1", "state_bytes": 12}
    full["running"] = {
        "runs": [["h1", "a⋈b"]],
        "sends": [["h0", "h1", "a"]],
        "serves": {"q0": "h1"},
    }
    text = write_problem(problem_of(full))
    again = read_problem(text)
    assert write_problem(again) == text
    assert np.isinf(again.hosts.cpu[0])
    assert again.hosts.link_bps is not None
    assert again.hosts.link_bps[0, 2] == 7
    assert again.hosts.link_bps[1, 2] == 50
    assert again.queries.latency_bound_ms.tolist() == [np.inf, 9]
    assert again.running == problem_of(full).running


def test_where_no_way_leads_nothing_can_be_sent_whoever_plans() -> None:
    cut_off = copy.deepcopy(TWO_WAY)
    cut_off["latency_ms"] = [[0, 1, None], [1, 0, None], [None, None, 0]]
    cut_off["queries"] = [{"name": "q", "wants": "ab", "proxy": "h2"}]
    problem = read_problem(write_problem(problem_of(cut_off)))
    assert problem.hosts.latency_ms is not None
    assert np.isinf(problem.hosts.latency_ms[0, 2])
    assert problem.hosts.link_bps is not None
    assert problem.hosts.link_bps[0].tolist() == [np.inf, np.inf, 0]
    for name in ("sqpr", "in-network", "heuristic"):
        outcome = find_strategy(name).plan(problem, Options())
        assert outcome.deployment.admitted == 0, name
    told = find_strategy("sqpr").plan(problem, Options()).refusals[0].detail
    assert "no way leads from a, b to the proxy h2" in told
    told = find_strategy("in-network").plan(problem, Options()).refusals[0].detail
    assert told == "no way leads from a to the proxy h2: add a link"
    with pytest.raises(ProblemError, match="no way leads from h0 to h2"):
        find_strategy("cosmos").plan(problem, Options())


def test_a_cycle_is_told_with_all_that_are_in_it() -> None:
    circular = copy.deepcopy(TWO_WAY)
    circular["streams"].append({"name": "back", "rate_bps": 1})
    circular["operators"][0]["inputs"] = ["a", "back"]
    circular["operators"].append(
        {"name": "again", "inputs": ["ab", "b"], "output": "back", "cpu": 1}
    )
    with pytest.raises(
        ProblemError, match="a cycle: again makes back for a⋈b, a⋈b makes ab for again"
    ):
        problem_of(circular)


def test_a_deployment_survives_the_round_trip_and_tells_its_cost() -> None:
    problem = two_way()
    chosen = deployment(2, runs=[(1, 0)], sends=[(0, 1, 0)], serves={0: 1, 1: 1})
    text = write_deployment(problem, chosen)
    assert read_deployment(text, problem) == chosen
    assert msgspec.json.decode(text)["cost"] == {
        "admitted": 2,
        "network_bps": 40.0,
        "cpu": 7.0,
        "busiest": 0.7,
    }


def test_wants_survive_the_round_trip() -> None:
    problem = two_way()
    chosen = deployment(2, runs=[(1, 0)], serves={0: 1}, wants=[(1, 0)])
    assert read_deployment(write_deployment(problem, chosen), problem) == chosen


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["hosts"][1].update(cpu=-1), "$.hosts[1].cpu: must be a number"),
        (lambda d: d["hosts"][1].update(cpu="x"), "$.hosts[1].cpu: Expected `float | null`"),
        (lambda d: d["hosts"][1].update(cpus=1), "$.hosts[1]: Object contains unknown field"),
        (lambda d: d["hosts"][1].update(name="h0"), "$.hosts[1].name: there are two hosts named"),
        (lambda d: d["streams"][0].update(home="h9"), "$.streams[0].home: there is no host named"),
        (lambda d: d["streams"][0].pop("home"), "$.streams[0]: it has no home"),
        (lambda d: d["streams"][2].update(home="h0"), "$.streams[2]: a base stream has a home"),
        (lambda d: d["operators"][0].update(inputs=[]), "$.operators[0].inputs: an operator has"),
        (
            lambda d: d["operators"][0].update(inputs=["a", "bb"]),
            "$.operators[0].inputs[1]: there is no stream named 'bb'; did you mean",
        ),
        (
            lambda d: d["operators"][0].update(inputs=["a", "ab"]),
            "$.operators[0]: a cycle: a⋈b makes ab for a⋈b;",
        ),
        (lambda d: d["queries"][1].update(wants="x"), "$.queries[1].wants: there is no stream"),
        (
            lambda d: d["queries"][1].update(latency_bound_ms=5),
            "$.queries[1].latency_bound_ms: a bound on latency needs",
        ),
        (lambda d: d.update(latency_ms=[[0, 1]] * 3), "$.latency_ms[0]: must have 3 numbers"),
        (
            lambda d: d.update(links=[{"from": "h0", "to": "h7", "bps": 1}]),
            "$.links[0].to: there is no host named 'h7'",
        ),
        (
            lambda d: d.update(running={"runs": [["h0", "join"]]}),
            "$.running.runs[0][1]: there is no operator named 'join'",
        ),
        (
            lambda d: d.update(running={"wants": [], "sends": [["h0", "h1", "a"]]}),
            "$.running.wants: a deployment has sends or wants",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_path(change, message) -> None:
    document = copy.deepcopy(TWO_WAY)
    change(document)
    with pytest.raises(ProblemError) as caught:
        problem_of(document)
    assert str(caught.value).startswith(message)


def test_text_that_is_not_json_is_told() -> None:
    with pytest.raises(ProblemError, match="not JSON"):
        read_problem(b"{")
