import os
import stat
from pathlib import Path

import pytest

from thalweg.engine.java import java_problem


def _fake_java(home: Path, banner: str, exit_code: int = 0) -> None:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{banner}' >&2\nexit {exit_code}\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_java_17_or_later_is_fine(version, tmp_path, monkeypatch):
    _fake_java(tmp_path, f'openjdk version "{version}" 2025-04-15')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_problem() is None


@pytest.mark.parametrize(("version", "major"), [("1.8.0_392", 8), ("11.0.2", 11)])
def test_older_java_is_named_with_what_to_do(version, major, tmp_path, monkeypatch):
    _fake_java(tmp_path, f'java version "{version}"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    problem = java_problem()
    assert f"is Java {major}" in problem
    assert "JAVA_HOME" in problem


def test_java_home_without_a_java_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert str(tmp_path / "bin" / "java") in java_problem()


def test_no_java_at_all_says_how_to_get_one(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    assert "install Java 17" in java_problem()
