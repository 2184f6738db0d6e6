import json
import os
import signal
import sys
import time
from dataclasses import asdict, dataclass
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from thalweg.cli.main import app
from thalweg.experiments.report import Goal, Report


@dataclass(frozen=True)
class Parameters:
    queries: tuple[int, ...] = (1, 8)
    overlap: float = 1.0
    limit_s: float = 9.0

    def __post_init__(self) -> None:
        if self.overlap > 1:
            raise ValueError("overlap is a part")

    @classmethod
    def quick(cls) -> "Parameters":
        return cls(queries=(1,))


def run_bench(parameters, progress):
    progress("measuring")
    goals = [Goal("speed", 1.0, 2.0, "x")]
    return Report("fake", "A fake", asdict(parameters), [{"n": 1}], goals)


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thalweg.cli.bench._benches", lambda: {"fake-one": "of a test"})
    module = SimpleNamespace(Parameters=Parameters, run=run_bench)
    monkeypatch.setitem(sys.modules, "bench.fake_one", module)


def run(*arguments):
    return CliRunner().invoke(app, ["bench", *arguments])


def test_benches_are_listed():
    assert "fake-one       of a test" in run("list").stdout


def test_a_report_with_missed_goals_is_no_failure():
    done = run("fake-one", "--json")
    assert done.exit_code == 0
    report = json.loads(done.stdout)
    assert report["parameters"] == {"queries": [1, 8], "overlap": 1.0, "limit_s": 9.0}
    assert report["goals"][0]["met"] is False


def test_a_run_that_is_told_to_end_stops_what_it_has_started(monkeypatch):
    stopped = []

    def run_until_told(parameters, progress):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        finally:
            stopped.append("its nodes")

    module = SimpleNamespace(Parameters=Parameters, run=run_until_told)
    monkeypatch.setitem(sys.modules, "bench.fake_one", module)
    before = signal.getsignal(signal.SIGTERM)
    assert run("fake-one").exit_code != 0
    assert stopped == ["its nodes"]
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize(
    "options",
    [
        ("--queries", "64,1000", "--overlap", "0.5", "--limit-s=3"),
        ("--set", "queries=64,1000", "--set", "overlap=0.5", "--limit-s", "3", "--quick"),
    ],
)
def test_parameters_are_options(options):
    report = json.loads(run("fake-one", "--json", *options).stdout)
    assert report["parameters"] == {"queries": [64, 1000], "overlap": 0.5, "limit_s": 3.0}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--query", "3"), "there is no option --query: fake-one takes --queries, --overlap"),
        (("--queries",), "--queries needs a value"),
        (("--queries", "few"), "queries is like (1, 8)"),
        (("--overlap", "2"), "overlap is a part"),
        (("more",), "there is no option more"),
    ],
)
def test_a_wrong_option_is_bad_input(options, says):
    done = run("fake-one", *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert says in done.stderr


def test_an_unknown_benchmark_is_bad_input():
    done = run("fake-two")
    assert done.exit_code == 2
    assert "there are fake-one" in done.stderr


def test_a_file_in_the_way_is_told_before_the_run(tmp_path):
    (tmp_path / "out").write_text("")
    done = run("fake-one", "--out", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "a file is in the way" in done.stderr
    assert "measuring" not in done.stderr
