"""`network up --controller`: what each node is told of who moves fragments."""

import pytest

from thalweg.cli.exits import CommandFailed
from thalweg.cli.network.wanting import controlled
from thalweg.runtime.network.moves.controllers import Controller


def test_one_node_manages_and_all_have_partners_or_replan() -> None:
    manager, partners, replanning = Controller
    assert controlled(None, None, is_first=True) == {}
    told = [controlled(manager, None, is_first=first)["balance"] for first in (True, False)]
    assert told == [(0.25, 60.0), None]
    found = controlled(partners, "round_s=2", is_first=False)
    assert found == {"controller": "partners", "partners": "round_s=2"}
    assert controlled(partners, None, is_first=True)["partners"] == ""
    assert controlled(replanning, None, is_first=True)["replan_every_s"] == 30


def test_numbers_of_partners_need_partners() -> None:
    with pytest.raises(CommandFailed, match="--controller partners"):
        controlled(Controller.manager, "round_s=2", is_first=True)
