"""Which nodes `network up` starts."""

from dataclasses import replace
from pathlib import Path

import pytest

from thalweg.cli.exits import CommandFailed
from thalweg.cli.network.running import Wanted
from thalweg.cli.network.wanting import (
    FIRST_PORT,
    as_before,
    names_of,
    remember,
    remembered,
    with_port,
)
from thalweg.runtime.network.moves.controllers import Controller


def test_without_a_number_the_nodes_that_were_there_come_again() -> None:
    assert names_of(None, []) == ["n1", "n2", "n3", "n4"]
    assert names_of(None, ["n1", "n2", "n3"]) == ["n1", "n2", "n3"]
    assert names_of(None, ["n1", "n10", "n3"]) == ["n1", "n3", "n10"]  # one has left
    assert names_of(5, ["n1", "n2", "n3"]) == ["n1", "n2", "n3", "n4", "n5"]


def test_nodes_that_a_file_named_come_again_without_it_and_get_no_others() -> None:
    assert names_of(None, ["paris", "rome"]) == ["paris", "rome"]
    with pytest.raises(CommandFailed, match="the nodes here are paris, rome, as a file named them"):
        names_of(2, ["paris", "rome"])


def test_nodes_come_again_as_they_were(tmp_path: Path) -> None:
    peers = {"mode": "p2p", "copies": 2, "trees": None}
    made = as_before(["n1", "n2"], [], 7000, peers)
    assert [(w.port, w.mode, w.copies, w.master) for w in made] == [
        (7000, "p2p", 2, "in-process"),
        (0, "p2p", 2, "in-process"),
    ]
    remember(tmp_path, made)
    known = remembered(tmp_path)
    assert known == made
    assert as_before(["n1", "n2"], known, FIRST_PORT, {"mode": None}) == made
    *_, third = as_before(["n1", "n2", "n3"], known, FIRST_PORT, {})
    assert (third.name, third.mode, third.copies) == ("n3", "p2p", 2)  # like the others
    assert as_before(["n1"], known, 7001, {"copies": 1})[0] == replace(made[0], copies=1, port=7001)


def test_who_moves_fragments_is_kept(tmp_path: Path) -> None:
    made = as_before(["n1", "n2"], [], 0, {}, Controller.manager)
    remember(tmp_path, made)
    again = as_before(["n1", "n2"], remembered(tmp_path), FIRST_PORT, {})
    assert [w.balance for w in again] == [(0.25, 60.0), None]


def test_a_files_first_node_is_where_commands_look_unless_it_says_ports() -> None:
    rome, paris = Wanted("rome"), Wanted("paris", port=9)
    assert [w.port for w in with_port([rome, rome], 7)] == [7, 0]
    assert [w.port for w in with_port([rome, paris], 7)] == [0, 9]
