"""A network described in a file."""

from pathlib import Path

import pytest

from thalweg.cli.exits import CommandFailed
from thalweg.cli.network.file import nodes_of
from thalweg.cli.network.running import Wanted


def test_nodes_have_names_sites_and_masters(tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    file.write_text(
        '[[node]]\nname = "paris"\nsite = "eu"\nport = 7341\n'
        '[[node]]\nname = "rome"\nmaster = "in-process"'
    )
    assert nodes_of(file) == [
        Wanted("paris", "eu", port=7341),
        Wanted("rome", master="in-process"),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[node]]", "missing required field `name`"),
        ('[[node]]\nname = "a"\ncolour = "red"', "unknown field `colour`"),
        ('[[node]]\nname = "a"\n[[node]]\nname = "a"', "two nodes are named a"),
        ("node = []", "no .*node"),
        ("[[node", "Expected|expected"),
    ],
)
def test_what_is_wrong_with_it_is_said(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    with pytest.raises(CommandFailed, match=reason):
        nodes_of(file)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="can't read"):
        nodes_of(tmp_path / "none.toml")
