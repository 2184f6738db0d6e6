import json
from copy import deepcopy

import pytest
from tests.placement.problems import TWO_WAY
from typer.testing import CliRunner

from thalweg.cli.main import app


def run(*arguments, document=TWO_WAY):
    text = document if isinstance(document, str) else json.dumps(document)
    return CliRunner().invoke(app, ["plan", "-", *arguments], input=text)


def with_hosts(**limits):
    hosts = [
        {"name": f"h{i}", "cpu": 10, "out_bps": 100, "in_bps": 100, **limits} for i in range(3)
    ]
    return {**deepcopy(TWO_WAY), "hosts": hosts}


def test_a_table_of_hosts_with_their_load():
    done = run("--strategy", "heuristic")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "heuristic admits 2 of 2 queries: CPU 7 of 30, traffic 30 bps, busiest host 70%",
        "",
        "HOST   CPU          OUT           IN       RUNS  RELAYS  SERVES",
        "h0    7/10  70%   5 bps   5%  30 bps  30%     1       0       2",
        "h1    0/10   0%  30 bps  30%   0 bps   0%     0       0       0",
        "h2    0/10   0%   0 bps   0%   0 bps   0%     0       0       0",
    ]


@pytest.mark.parametrize("strategy", ["sqpr", "heuristic", "soda", "aggregate-host"])
def test_every_strategy_answers_by_its_name(strategy):
    answer = json.loads(run("--strategy", strategy, "--json").stdout)
    assert (answer["strategy"], answer["admitted"], answer["submitted"]) == (strategy, 2, 2)


def test_the_answer_as_json_holds_deployment_hosts_and_cost():
    answer = json.loads(run("--json", "--strategy", "heuristic").stdout)
    assert answer["deployment"]["runs"] == [["h0", "a⋈b"]]
    assert answer["deployment"]["cost"]["admitted"] == 2
    assert answer["hosts"][0]["cpu_capacity"] == 10.0
    assert answer["refused"] == []


def test_a_bound_is_told_as_a_bound():
    done = run("--strategy", "lp-bound")
    assert done.stdout == "a bound: no deployment admits more than 2 queries\n"
    assert json.loads(run("--strategy", "lp-bound", "--json").stdout)["bound"] == 2.0


def test_explain_shows_the_plan_as_a_tree():
    done = run("--explain", "q0", "--strategy", "heuristic")
    assert done.stdout.endswith(
        "q0: ab from h0\n└─ a⋈b, at h0, 7 CPU\n   ├─ a, base stream at h0\n"
        "   └─ b, base stream at h1, sends b to h0, 30 bps\n"
    )
    assert set(json.loads(run("--explain", "all", "--json").stdout)["explain"]) == {"q0", "q1"}


def test_a_refused_query_says_which_resource_was_short_and_where():
    document = deepcopy(TWO_WAY)
    document["streams"].append({"name": "c", "rate_bps": 5})
    document["operators"].append({"name": "again", "inputs": ["ab"], "output": "c", "cpu": 9})
    document["operators"][0]["pinned"] = document["operators"][1]["pinned"] = "h0"
    document["queries"] = [{"name": "q0", "wants": "ab"}, {"name": "q2", "wants": "c"}]
    done = run("--strategy", "heuristic", document=document)
    assert done.exit_code == 0
    row = next(line for line in done.stdout.splitlines() if line.startswith("q2"))
    assert row.split()[:3] == ["q2", "cpu", "h0"]
    assert "it would need 16 CPU at h0, which has 10" in row
    refused = json.loads(run("--json", "--strategy", "heuristic", document=document).stdout)
    assert refused["refused"][0]["impossible"] is True
    assert refused["refused"][0]["lacks"] == [
        {"resource": "cpu", "host": "h0", "to": None, "has": 10.0, "needs": 16.0}
    ]


def test_an_impossible_problem_says_what_the_nearest_possible_one_has_more():
    done = run(document=with_hosts(cpu=6))
    assert done.exit_code == 1
    assert "impossible: on idle hosts too, it would need 7 CPU at h" in done.stdout
    assert "the problem is impossible: no query fits, not even by itself" in done.stderr


def test_weights_are_heard():
    by_network = run("--weights", "network=1,cpu=0,balance=0", "--strategy", "heuristic", "--json")
    assert json.loads(by_network.stdout)["deployment"]["runs"] == [["h0", "a⋈b"]]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--strategy", "sqrp"), "no strategy is named 'sqrp'; did you mean 'sqpr'?"),
        (("--weights", "speed=1"), "--weights speed=1: there are admitted, network, cpu, balance"),
        (("--weights", "cpu=much"), "--weights cpu=much: give a number"),
        (("--weights", "cpu=-1"), "a weight can't be negative"),
        (("--explain", "q9"), "--explain q9: there is no such query"),
        (("--svg", "no/such/folder/x.svg"), "no/such/folder/x.svg: No such file or directory"),
    ],
)
def test_bad_options_are_bad_input(arguments, says):
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"hosts": [{"name": "h0", "cpu": -1}]}, "$.hosts[0].cpu"),
        ({"hosts": [{"nam": "h0"}]}, "$.hosts[0]"),
        ({"queries": [{"name": "q", "wants": "abc"}]}, "$.queries[0].wants"),
        ({"streams": [{"name": "a", "rate_bps": "fast"}]}, "$.streams[0].rate_bps"),
    ],
)
def test_bad_problems_are_told_with_their_json_path(change, says):
    done = run(document={**deepcopy(TWO_WAY), **change})
    assert done.exit_code == 2
    assert f"-: {says}" in done.stderr


def test_text_that_is_no_json_and_files_that_are_not_there():
    assert "this is not JSON" in run(document="{").stderr
    done = CliRunner().invoke(app, ["plan", "nowhere.json"])
    assert (done.exit_code, done.stderr) == (2, "error: nowhere.json: No such file or directory\n")


def test_pictures_are_of_the_whole_or_of_the_explained_plan(tmp_path):
    svg, dot = tmp_path / "x.svg", tmp_path / "x.dot"
    run("--svg", str(svg), "--dot", str(dot))
    assert "digraph deployment" in dot.read_text()
    assert ">h2</text>" in svg.read_text()
    run("--svg", str(svg), "--dot", str(dot), "--explain", "q0")
    assert "digraph plan" in dot.read_text()
    assert ">q0</text>" in svg.read_text()


def test_without_a_problem_strategies_are_listed():
    done = CliRunner().invoke(app, ["plan"])
    assert done.exit_code == 0
    assert {line.split()[0] for line in done.stdout.splitlines()[1:]} >= {"sqpr", "soda"}


def test_a_broken_deployment_never_leaves(monkeypatch):
    """Guards the guard: a strategy that cheats is caught by the judge."""
    from thalweg.cli import planning
    from thalweg.placement.deployment import deployment
    from thalweg.placement.strategy import Outcome, Strategy

    cheat = Strategy("cheat", "", lambda problem, _: Outcome(deployment(2, serves={0: 0})))
    monkeypatch.setattr(planning, "find_strategy", lambda _: cheat)
    done = run()
    assert (done.exit_code, done.stdout) == (1, "")
    assert "cheat gave a deployment that can't run" in done.stderr


WIDE = {
    "hosts": [{"name": n} for n in ("north", "south", "hub", "user")],
    "latency_ms": [[0, 40, 20, 60], [40, 0, 20, 60], [20, 20, 0, 40], [60, 60, 40, 0]],
    "streams": [
        {"name": "Trades", "rate_bps": 8000, "home": "north"},
        {"name": "News", "rate_bps": 8000, "home": "south"},
    ],
}
SCRIPT = """
CREATE STREAM Trades (symbol INT, price INT, ts BIGINT) TIMESTAMP BY ts;
CREATE STREAM News (symbol INT, score INT, ts BIGINT) TIMESTAMP BY ts;
CREATE QUERY movers AS SELECT price, score
FROM Trades [RANGE 5 SECONDS], News [RANGE 5 SECONDS] WHERE Trades.symbol = News.symbol;
"""


@pytest.mark.parametrize("strategy", ["proxy", "edge", "edge+", "in-network", "optimal"])
def test_cql_queries_are_placed_between_their_sources_and_a_proxy(strategy, tmp_path):
    script = tmp_path / "movers.cql"
    script.write_text(SCRIPT)
    options = ("--strategy", strategy, "--cql", str(script), "--proxy", "user")
    answer = json.loads(run(*options, "--explain", "movers", "--json", document=WIDE).stdout)
    assert answer["admitted"] == 1
    hosts = {host for host, _ in answer["deployment"]["runs"]}
    assert hosts <= ({"user"} if strategy == "proxy" else {"north", "south", "hub"})
    use = answer["network"]["movers"]
    assert use["straight_bits"] == 960
    assert use["saving"] == pytest.approx(1 - use["bits"] / 960)
    assert (use["saving"] > 0.5) == (strategy != "proxy")


def test_cosmos_places_whole_queries_over_the_parts_of_streams_that_they_want(tmp_path):
    script = tmp_path / "cheap.cql"
    stream = SCRIPT.partition("CREATE QUERY")[0]
    cheap = "CREATE QUERY cheap AS SELECT symbol FROM Trades [NOW] WHERE price < 10;"
    dear = "CREATE QUERY dear AS SELECT symbol FROM Trades [NOW] WHERE price >= 5;"
    script.write_text(stream + cheap + dear)
    options = ("--strategy", "cosmos", "--cql", str(script), "--proxy", "user")
    answer = json.loads(run(*options, "--explain", "cheap", "--json", document=WIDE).stdout)
    assert answer["admitted"] == 2
    assert "Trades[price (-∞, 5)]" in answer["explain"]["cheap"]
    assert any("weighted edge cut" in note for note in answer["notes"])
    done = run("--strategy", "cosmos", document=TWO_WAY)
    assert done.exit_code == 2
    assert "$.latency_ms: COSMOS places by distance" in done.stderr


def test_explain_tells_link_costs_savings_and_stretch(tmp_path):
    script = tmp_path / "movers.cql"
    script.write_text(SCRIPT)
    options = ("--strategy", "optimal", "--cql", str(script), "--proxy", "movers=user")
    lines = run(*options, "--explain", "movers", "--bound-ms", "90", document=WIDE).stdout
    assert "8 kbps × 20 ms = 160 bit" in lines
    assert "in flight, 960 bit with everything at the proxy: saves" in lines
    assert "times the straight 60 ms, its bound 90 ms" in lines


def test_a_map_shows_operators_on_the_network(tmp_path):
    script, drawing = tmp_path / "movers.cql", tmp_path / "map.svg"
    script.write_text(SCRIPT)
    options = ("--strategy", "in-network", "--cql", str(script), "--proxy", "user")
    assert run(*options, "--map", str(drawing), document=WIDE).exit_code == 0
    text = drawing.read_text()
    assert "north; has Trades" in text
    assert "user; proxy of movers" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), r"$.queries[0].proxy: operators are placed between sources and a proxy"),
        (("--proxy", "usr"), "--proxy usr: there is no host named 'usr'; did you mean 'user'?"),
        (("--proxy", "mover=user"), "there is no query named 'mover'; did you mean 'movers'?"),
    ],
)
def test_a_missing_or_unknown_proxy_is_told(options, message, tmp_path):
    script = tmp_path / "movers.cql"
    script.write_text(SCRIPT)
    done = run("--strategy", "edge", "--cql", str(script), *options, document=WIDE)
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("script", "document", "message"),
    [
        (SCRIPT, TWO_WAY, "with --cql, the problem has hosts and base streams only"),
        (SCRIPT.replace("price,", "prise,"), WIDE, 'there is no column "prise"'),
        (SCRIPT.partition("CREATE QUERY")[0], WIDE, "there is no query in it"),
        (SCRIPT.replace("News", "Olds"), WIDE, "stream Olds: its home and its rate must be known"),
    ],
)
def test_what_does_not_fit_together_is_told(script, document, message, tmp_path):
    file = tmp_path / "queries.cql"
    file.write_text(script)
    done = run("--cql", str(file), "--proxy", "user", document=document)
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_bound_below_every_way_refuses_with_the_reason(tmp_path):
    script = tmp_path / "movers.cql"
    script.write_text(SCRIPT)
    options = ("--strategy", "edge", "--cql", str(script), "--proxy", "user", "--bound-ms", "50")
    done = run(*options, document=WIDE)
    assert done.exit_code == 1
    answer = json.loads(run(*options, "--json", document=WIDE).stdout)
    (refused,) = answer["refused"]
    assert refused["resource"] == "latency"
    assert "nothing meets the bound of 50 ms" in refused["detail"]
    assert "alone takes 60 ms to the proxy" in refused["detail"]


def running_elsewhere():
    """The join runs at h2, far from both sources; everything is wanted at h0."""
    far = {**with_hosts(), "latency_ms": [[0, 5, 90], [5, 0, 90], [90, 90, 0]]}
    far["queries"] = [{"name": "q0", "wants": "ab", "proxy": "h0"}]
    far["operators"][0]["state_bytes"] = 12
    far["running"] = {
        "runs": [["h2", "a⋈b"]],
        "sends": [["h0", "h2", "a"], ["h1", "h2", "b"], ["h2", "h0", "ab"]],
        "serves": {"q0": "h0"},
    }
    return far


def test_operators_that_move_are_listed_with_their_state():
    done = run("--strategy", "in-network", document=running_elsewhere())
    assert done.stdout.splitlines()[-2:] == [
        "MOVES  FROM  TO  STATE, BYTES",
        "a⋈b    h2    h0          12.0",
    ]
    answer = json.loads(
        run("--strategy", "in-network", "--json", document=running_elsewhere()).stdout
    )
    assert answer["moves"] == [{"operator": "a⋈b", "from": "h2", "to": "h0", "state_bytes": 12.0}]


def test_without_anything_that_runs_nothing_moves():
    assert "MOVES" not in run().stdout
    assert json.loads(run("--json").stdout)["moves"] == []
