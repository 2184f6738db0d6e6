import subprocess
import sys
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


def test_a_command_loads_neither_solvers_nor_engine_before_it_needs_them():
    """Every command pays for what the entry point imports: `ps` must not load the simulator."""
    code = "import sys, thalweg.cli.main; print(*sorted(sys.modules), sep='\\n')"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    heavy = ("numpy", "scipy", "polars", "pyarrow", "pyspark", "thalweg.sim", "thalweg.engine")
    heavy += ("thalweg.cql", "thalweg.overlay")
    assert [m for m in loaded if m.startswith(heavy)] == []


def test_the_package_runs_as_a_module():
    told = subprocess.run(
        [sys.executable, "-m", "thalweg", "--version"], check=True, capture_output=True, text=True
    )
    assert told.stdout == f"thalweg {version('thalweg')}\n"
