import csv
import json
import re
from pathlib import Path

import pytest
from tests.experiments.conftest import folder  # noqa: F401
from typer.testing import CliRunner

from thalweg.cli.main import app

pytestmark = pytest.mark.usefixtures("folder")


def run(*arguments):
    return CliRunner().invoke(app, ["experiment", *arguments])


def test_without_a_name_all_are_listed():
    done = run()
    assert done.exit_code == 0
    assert "coin-toss  How often a coin shows heads." in done.stdout


def test_the_list_as_json():
    names = [entry["name"] for entry in json.loads(run("--json").stdout)]
    assert names == ["broken", "coin-toss"]


def test_an_unknown_name_is_bad_input_with_a_suggestion():
    done = run("coin-tosss")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "did you mean coin-toss?" in done.stderr


def test_missed_goals_are_told_and_the_exit_code_is_0():
    done = run("coin-toss", "--json")
    assert done.exit_code == 0
    report = json.loads(done.stdout)
    assert report["goals"] == [
        {"name": "share of heads", "measured": 0.5, "goal": "≥ 0.9", "met": False}
    ]
    assert report["beside"][0]["why they differ"] == "chance"


def test_what_goes_on_is_told_on_stderr():
    assert "experiment coin-toss: seed 0 (0%)" in run("coin-toss").stderr


@pytest.mark.parametrize(
    ("options", "seeds"), [((), 20), (("--quick",), 2), (("--quick", "--seeds", "7"), 7)]
)
def test_seeds(options, seeds):
    assert json.loads(run("coin-toss", "--json", *options).stdout)["parameters"]["seeds"] == seeds


def test_a_parameter_is_set_by_name():
    done = run("coin-toss", "--json", "--set", "fair=false", "--set", "sides=head,foot")
    report = json.loads(done.stdout)
    assert report["parameters"]["sides"] == ["head", "foot"]
    assert report["goals"][0]["met"] is True


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("seed=3", "the parameters are seeds, fair, sides"),
        ("seeds=few", "seeds is like 20"),
        ("fair=perhaps", "fair is like True"),
        ("sides=one", "a coin has two sides"),
    ],
)
def test_a_wrong_setting_is_bad_input(setting, says):
    done = run("coin-toss", "--set", setting)
    assert done.exit_code == 2
    assert says in done.stderr


def test_files_of_a_report(tmp_path):
    out = tmp_path / "out"
    assert run("coin-toss", "--quick", "--out", str(out)).exit_code == 0
    names = {"coin.csv", "coin.json", "coin.md", "coin-share.png", "coin-share.svg"}
    assert {f.name for f in out.iterdir()} == names
    assert list(csv.DictReader((out / "coin.csv").open())) == [{"seeds": "2", "heads": "1"}]
    page = (out / "coin.md").read_text()
    assert "| share of heads | 0.5 | ≥ 0.9 | no |" in page
    assert "| 1 | half | 0.5 | chance |" in page
    assert "![share](coin-share.svg)" in page


def test_a_page_tells_its_command_and_how_long_it_took(tmp_path):
    run("coin-toss", "--quick", "--seeds", "3", "--set", "fair=false", "--out", str(tmp_path))
    page = (tmp_path / "coin.md").read_text()
    command = "thalweg experiment coin-toss --quick --seeds 3 --set fair=false"
    assert re.search(rf"Made by `{command}` in \d+ s of CPU time on one core\.", page)


def test_all_run_one_after_another_and_each_is_told_when_it_ends(tmp_path):
    done = run("all", "--quick", "--out", str(tmp_path))
    assert done.exit_code == 1
    assert re.search(r"coin-toss +\d+\.\d +0 of 1", done.stdout)
    assert re.search(
        r"error: broken: .*coin-toss: \d+\.\d s of CPU, 0 of 1 goals met", done.stderr, re.S
    )
    assert (tmp_path / "coin.md").exists()


def test_all_take_no_parameters_of_one():
    done = run("all", "--set", "fair=false")
    assert done.exit_code == 2
    assert "parameters differ" in done.stderr


def test_a_file_in_the_way_is_told_before_the_run(tmp_path):
    (tmp_path / "out").write_text("")
    done = run("coin-toss", "--out", str(tmp_path / "out"))
    assert done.exit_code == 2
    assert "a file is in the way" in done.stderr
    assert "seed 0" not in done.stderr


def test_the_example_of_the_how_to_page_runs(folder):  # noqa: F811
    page = Path(__file__).parents[2] / "docs" / "how-to" / "add-an-experiment.md"
    code = re.search(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M)
    (folder / "spreading.py").write_text(code[1])
    report = json.loads(run("spreading", "--quick", "--json").stdout)
    assert [row["messages"] for row in report["rows"]] == [15, 255]
    assert report["goals"][0]["met"] is True
