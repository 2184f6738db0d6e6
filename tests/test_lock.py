"""The locks pin everything that pyproject.toml asks for, and say nothing of where it came from."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"(?P<name>[a-z0-9-]+)==[^\s=*]+( ; .+)?")


def _pinned(lock: str) -> set[str]:
    lines = (ROOT / lock).read_text().splitlines()
    requirements = [line for line in lines if line and not line.lstrip().startswith("#")]
    matches = [PIN.fullmatch(line) for line in requirements]
    unpinned = [line for line, match in zip(requirements, matches, strict=True) if not match]
    assert unpinned == []
    return {match["name"] for match in matches if match}


def _wanted(requirements: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9-]", requirement, maxsplit=1)[0] for requirement in requirements}


def test_runtime_lock_pins_every_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert _wanted(project["dependencies"]) <= _pinned("requirements.lock")


def test_development_lock_adds_the_tools_to_the_runtime_lock():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tools = _wanted(project["optional-dependencies"]["dev"])
    assert tools | _pinned("requirements.lock") <= _pinned("requirements-dev.lock")


@pytest.mark.parametrize("peer", ["flink", "pathway"])
def test_the_lock_of_a_peer_pins_its_group(peer):
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    assert _wanted(groups[peer]) <= _pinned(f"requirements-{peer}.lock")


@pytest.mark.parametrize(
    "lock",
    [
        "requirements.lock",
        "requirements-dev.lock",
        "requirements-flink.lock",
        "requirements-pathway.lock",
    ],
)
def test_lock_names_no_host_and_no_path(lock):
    text = (ROOT / lock).read_text()
    assert not re.search(r"://|--(extra-)?index|--find-links|\s@\s|(^|\s)/", text, re.MULTILINE)
