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
        ("", r"there is no \[\[node\]\]"),
        ('strategy = "x"\n[[node]]\nname = "a"', "strategy = .x.: there are local, home, sqpr"),
        ('[[node]]\nname = "a"\nengine = "f"', "engine = .f.: there are shared, native, none"),
        ('[[node]]\nname = "a b/c"', "'a b/c' is not a node's name"),
        ('[[node]]\nname = "a"\nengine = "none"', "say trees"),
        ('replan_every_s = 0\n[[node]]\nname = "a"', "replan_every_s"),
        (
            'trees = "oak"\n[[node]]\nname = "a"',
            "there are nearest, greedy, adaptive",
        ),
        ('[balance]\nnode = "b"\n[[node]]\nname = "a"', "balance. names b"),
        (
            'replan_every_s = 9\n[balance]\nnode = "a"\n[[node]]\nname = "a"',
            "moved by one controller, and manager and replanning are set up",
        ),
        ('controller = "manager"\n[[node]]\nname = "a"', "say .balance. node"),
        ('controller = "replanning"\n[[node]]\nname = "a"', "needs replan_every_s"),
        (
            'controller = "chance"\n[[node]]\nname = "a"',
            "there are manager, partners",
        ),
        ('[sites.x]\ncontroller = "partners"\n[[node]]\nname = "a"', "no .* has that site"),
        ('[partners]\nkappa = 1\n[[node]]\nname = "a"', "kappa"),
        ('mode = "p2p"\n[partners]\n[[node]]\nname = "a"', "for mode"),
        (
            'planning = "protocol"\n[balance]\nnode = "a"\n[[node]]\nname = "a"',
            "moved by one of them",
        ),
        ('planning = "protocol"\nmode = "p2p"\n[[node]]\nname = "a"', "is for mode"),
        ('planning = "dice"\n[[node]]\nname = "a"', "planning = .dice.: there are node, protocol"),
        ("[[node", "Expected|expected"),
    ],
)
def test_what_is_wrong_with_it_is_said(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    with pytest.raises(CommandFailed, match=reason):
        nodes_of(file)


def test_a_network_has_trees_and_brokers(tmp_path: Path) -> None:
    file = tmp_path / "trees.toml"
    file.write_text(
        'trees = "greedy"\n[[node]]\nname = "paris"\n[[node]]\nname = "b"\nengine = "none"'
    )
    assert nodes_of(file) == [
        Wanted("paris", trees="greedy"),
        Wanted("b", engine="none", trees="greedy"),
    ]


def test_nodes_of_a_network_may_decide_together(tmp_path: Path) -> None:
    file = tmp_path / "together.toml"
    file.write_text('planning = "protocol"\n[[node]]\nname = "a"\n[[node]]\nname = "b"')
    assert [n.planning for n in nodes_of(file)] == ["protocol", "protocol"]


def test_nodes_look_whether_plans_still_fit(tmp_path: Path) -> None:
    file = tmp_path / "watching.toml"
    file.write_text('replan_every_s = 30\n[[node]]\nname = "paris"')
    assert nodes_of(file) == [Wanted("paris", replan_every_s=30)]


def test_one_node_of_a_network_balances(tmp_path: Path) -> None:
    file = tmp_path / "balanced.toml"
    file.write_text(
        '[balance]\nnode = "b"\npause_s = 5\nby = "mslb"\n'
        '[[node]]\nname = "a"\n[[node]]\nname = "b"'
    )
    assert [n.balance for n in nodes_of(file)] == [None, (0.25, 5.0)]
    assert [n.balance_by for n in nodes_of(file)] == [None, "mslb"]


def test_one_controller_decides_and_the_others_advise(tmp_path: Path) -> None:
    file = tmp_path / "controlled.toml"
    file.write_text(
        'controller = "partners"\nreplan_every_s = 30\n[partners]\nround_s = 2\n'
        '[balance]\nnode = "b"\n[sites.us]\ncontroller = "replanning"\n'
        '[[node]]\nname = "a"\n[[node]]\nname = "b"\n[[node]]\nname = "c"\nsite = "us"'
    )
    nodes = nodes_of(file)
    assert [n.controller for n in nodes] == ["partners", "partners", "replanning"]
    assert {n.partners for n in nodes} == {"round_s=2.0,kappa=1.2,alpha=0.9,max1=5"}
    assert [n.balance is not None for n in nodes] == [False, True, False]
    file.write_text('[partners]\n[[node]]\nname = "a"')
    (node,) = nodes_of(file)  # the only one that is set up
    assert (node.controller, node.partners) == (None, "round_s=5.0,kappa=1.2,alpha=0.9,max1=5")


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="can't read"):
        nodes_of(tmp_path / "none.toml")


def test_a_node_may_have_another_engine(tmp_path):
    path = tmp_path / "network.toml"
    path.write_text('[[node]]\nname = "a"\n[[node]]\nname = "b"\nengine = "native"\n')
    assert [n.engine for n in nodes_of(path)] == ["shared", "native"]
    path.write_text('[[node]]\nname = "a"\nengine = "flink"\n')
    with pytest.raises(CommandFailed, match="engine"):
        nodes_of(path)
