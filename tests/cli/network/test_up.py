"""Networks that do not start leave nothing that the next start would have to go on with."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from thalweg.cli.exits import CommandFailed
from thalweg.cli.network import command
from thalweg.cli.network.running import Wanted
from thalweg.cli.network.wanting import remember, remembered


def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(wanted: Wanted, *_: object) -> None:
        raise CommandFailed(f"node {wanted.name} did not start")

    monkeypatch.setattr(command, "start", start)


def test_options_with_which_nothing_started_are_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch)
    folder = ["up", "--data-dir", str(tmp_path)]
    result = CliRunner().invoke(command.network, [*folder, "--nodes", "2", "--mode", "p2p"])
    assert result.exit_code == 1
    assert remembered(tmp_path) == []
    before = [Wanted("n1", trees="nearest")]
    remember(tmp_path, before)
    result = CliRunner().invoke(command.network, [*folder, "--nodes", "3", "--round-s", "5"])
    assert result.exit_code == 1
    assert remembered(tmp_path) == before


def test_trees_that_there_are_not_are_refused_before_anything_starts(tmp_path: Path) -> None:
    arguments = ["up", "--data-dir", str(tmp_path / "x"), "--trees", "oak"]
    result = CliRunner().invoke(command.network, arguments)
    assert result.exit_code == 2
    assert "there are nearest, greedy, adaptive" in result.stderr
    assert not (tmp_path / "x").exists()
