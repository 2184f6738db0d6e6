"""thalweg simulate: verdicts, and what is said about bad input."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from thalweg.cli.main import app
from thalweg.sim.scenarios import registry
from thalweg.sim.scenarios.membership import MembershipScenario


@pytest.fixture
def simulate():
    return lambda *words: CliRunner().invoke(app, ["simulate", *words])


@pytest.fixture
def _never_settles(monkeypatch):
    class Never(MembershipScenario):
        name = "never"

        def unsettled(self, world):
            return "never content"

    monkeypatch.setitem(registry.SCENARIOS, "never", Never)


def test_without_a_name_the_scenarios_are_listed(simulate):
    assert "chord " in simulate().stdout
    names = [entry["name"] for entry in json.loads(simulate("--json").stdout)]
    assert names[:2] == ["membership", "chord"]


def test_a_run_tells_options_messages_faults_and_verdict(simulate):
    result = simulate("membership", "--seed", "3")
    assert result.exit_code == 0
    assert result.stdout.startswith("scenario membership, seed 3\noptions\n  nodes ")
    assert " membership Ping\n" in result.stdout
    assert "\nverdict: ok, settled " in result.stdout
    assert simulate("membership", "--seed", "3").stdout == result.stdout


def test_a_trace_tells_every_event(simulate):
    found = json.loads(simulate("membership", "--seed", "3", "--json").stdout)
    lines = simulate("membership", "--seed", "3", "--trace").stdout.splitlines()
    assert sum(" membership: " in line for line in lines) == found["events"]


def test_the_number_of_nodes_can_be_given(simulate):
    found = json.loads(simulate("membership", "--nodes", "4", "--json").stdout)
    assert found["options"][0] == "nodes 4"


@pytest.mark.usefixtures("_never_settles")
def test_a_broken_promise_is_exit_code_1(simulate):
    result = simulate("never", "--seed", "1")
    assert result.exit_code == 1
    assert "verdict: FAILED at " in result.stdout
    assert "never content" in result.stdout


@pytest.mark.usefixtures("_never_settles")
def test_many_seeds_are_summed_up_and_failing_ones_named(simulate):
    result = simulate("membership", "--seeds", "3")
    assert result.exit_code == 0
    assert "SIMULATED HOURS" in result.stdout
    result = simulate("never", "--seed", "7", "--seeds", "2")
    assert result.exit_code == 1
    assert "thalweg simulate never --seed 8 --trace" in result.stderr
    assert [
        list(t["failed"]) for t in json.loads(simulate("never", "--seeds", "2", "--json").stdout)
    ]


@pytest.mark.parametrize("extra", [(), ("--seeds", "2")])
def test_an_unknown_scenario_is_exit_code_2(simulate, extra):
    result = simulate("membreship", *extra)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "did you mean membership?" in result.stderr


@pytest.mark.parametrize("words", [("chord", "--nodes", "0"), ("chord", "--seed", "-1")])
def test_impossible_numbers_are_exit_code_2(simulate, words):
    assert simulate(*words).exit_code == 2


def test_a_script_is_run_and_rewritten(simulate, tmp_path: Path):
    script = tmp_path / "story.txt"
    script.write_text("scenario membership\nstart n1\ncheck\n")
    result = simulate(str(script))
    assert (result.exit_code, "--rewrite keeps it" in result.stderr) == (1, True)
    assert simulate(str(script), "--rewrite").exit_code == 0
    assert script.read_text() == "scenario membership\nstart n1\ncheck\n----\nok\n"
    assert simulate(str(script)).exit_code == 0


def test_a_bad_script_says_where(simulate, tmp_path: Path):
    script = tmp_path / "story.txt"
    script.write_text("scenario membership\nrun -1s\n")
    result = simulate(str(script))
    assert result.exit_code == 2
    assert "story.txt:2: '-1s' is no duration" in result.stderr.replace("\n", "")
    assert simulate(str(tmp_path / "none.txt")).exit_code == 2
