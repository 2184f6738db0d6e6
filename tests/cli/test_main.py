from importlib.metadata import version

from typer.testing import CliRunner

from thalweg.cli.main import app


def test_version_is_that_of_the_installed_package():
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"thalweg {version('thalweg')}\n"


def test_unknown_command_exits_with_2_and_leaves_stdout_empty():
    result = CliRunner().invoke(app, ["flow-upstream"])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "flow-upstream" in result.stderr
