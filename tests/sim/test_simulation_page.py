"""What docs/simulation.md shows is what happens."""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from thalweg.cli.main import app
from thalweg.sim.options import FAULTS
from thalweg.sim.script import perform
from thalweg.sim.stage import Stage

PAGE = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text()


def _blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.S | re.M)


def test_the_protocol_keeps_its_promise_and_its_mutant_does_not_also_live(tmp_path):
    code, page = "\n".join(_blocks("python")), {"__name__": "simulation_page"}
    exec(compile(code, "docs/simulation.md", "exec"), page)
    first = page["live"](tmp_path / "first", None)
    second = page["live"](tmp_path / "second", first.address)
    second.leave()
    first.close()


def test_the_script_prints_what_it_shows():
    [script] = _blocks("script")
    assert perform(script, "docs/simulation.md") == script


def test_the_command_prints_what_it_shows():
    [block] = _blocks("console")
    command, _, shown = block.removeprefix("$ ").partition("\n")
    printed = CliRunner().invoke(app, shlex.split(command)[1:]).stdout
    pattern = ".*".join(re.escape(part) for part in shown.split("…"))
    assert re.fullmatch(pattern, printed, re.S), printed


def test_all_commands_and_all_faults_are_told():
    for verb in Stage()._verbs:
        assert f"`{verb}" in PAGE, verb
    for kind in FAULTS:
        assert kind in PAGE, kind
