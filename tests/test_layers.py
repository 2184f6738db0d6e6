"""The layer table of ARCHITECTURE.md: who may import whom, and who may import pyspark."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PACKAGES_ROOT = ROOT / "src" / "thalweg"

_CORE = {
    "plan": set(),
    "cql": {"plan"},
    "sharing": {"plan"},
    "placement": {"plan", "sharing"},
    "overlay": {"plan", "placement"},
    "adapt": {"plan", "placement", "overlay"},
    "engine": {"plan", "sharing"},
    "sim": {"plan", "overlay", "adapt", "placement", "engine"},
}
_BELOW_THE_TOP = {*_CORE, "runtime"}
MAY_IMPORT = {
    **_CORE,
    "runtime": set(_CORE) - {"sim"},
    "api": _BELOW_THE_TOP,
    "console": _BELOW_THE_TOP,
    "experiments": _BELOW_THE_TOP,
    "cli": _BELOW_THE_TOP | {"api", "console", "experiments"},
}
IMPURE = {"asyncio", "random", "socket", "time"}


@pytest.fixture(scope="module")
def contracts() -> dict[str, dict]:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return {contract["id"]: contract for contract in config["tool"]["importlinter"]["contracts"]}


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("thalweg", include_external_packages=True, cache_dir=None)


def _lint_imports(source_root: Path) -> subprocess.CompletedProcess[str]:
    """Run the project's contracts over the package found under `source_root`."""
    command = "import sys; from importlinter.cli import lint_imports_command as c; c(sys.argv[1:])"
    arguments = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    return subprocess.run(
        [sys.executable, "-c", command, *arguments],
        cwd=source_root,
        env={**os.environ, "PYTHONPATH": str(source_root), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_every_package_of_the_table_exists_and_no_other():
    found = {path.parent.name for path in PACKAGES_ROOT.glob("*/__init__.py")}
    assert found == set(MAY_IMPORT)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_contract_forbids_all_that_the_table_does_not_allow(package, contracts):
    ours = {f"thalweg.{other}" for other in set(MAY_IMPORT) - MAY_IMPORT[package] - {package}}
    foreign = set() if package == "engine" else {"pyspark"}
    if package in {"overlay", "adapt"}:
        foreign |= IMPURE
    assert contracts[package]["source_modules"] == [f"thalweg.{package}"]
    assert set(contracts[package]["forbidden_modules"]) == ours | foreign


def test_contracts_hold():
    run = _lint_imports(ROOT / "src")
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    ("package", "statement"),
    [
        ("plan", "import thalweg.cql"),
        ("cql", "from thalweg import engine"),
        ("placement", "import pyspark.sql"),
        ("overlay", "import time"),
        ("adapt", "from random import Random"),
        ("engine", "import thalweg.placement"),
        ("sim", "import thalweg.cql"),
        ("runtime", "import thalweg.sim"),
        ("api", "import thalweg.cli"),
    ],
)
def test_forbidden_import_is_caught(package, statement, tmp_path):
    shutil.copytree(PACKAGES_ROOT, tmp_path / "thalweg", ignore=shutil.ignore_patterns("__py*"))
    (tmp_path / "thalweg" / package / "trespasser.py").write_text(statement + "\n")
    run = _lint_imports(tmp_path)
    assert run.returncode == 1, run.stdout + run.stderr
    assert f"thalweg.{package}.trespasser -> " in run.stdout


def test_only_the_engine_imports_pyspark(imports):
    if "pyspark" not in imports.modules:
        return
    importers = imports.find_modules_that_directly_import("pyspark")
    assert {name for name in importers if not name.startswith("thalweg.engine")} == set()


def test_of_the_engine_the_simulator_imports_the_judge_alone(imports):
    """The reference evaluator, and the types that it is given and gives."""
    allowed = {"thalweg.engine.reference", "thalweg.engine.arrivals", "thalweg.engine.changelog"}
    found = {
        imported
        for module in imports.modules
        if module.startswith("thalweg.sim")
        for imported in imports.find_modules_directly_imported_by(module)
        if imported.startswith("thalweg.engine")
    }
    assert found <= allowed
