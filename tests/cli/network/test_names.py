"""Which nodes `network up` starts."""

import pytest

from thalweg.cli.exits import CommandFailed
from thalweg.cli.network.command import names_of


def test_without_a_number_the_nodes_that_were_there_come_again() -> None:
    assert names_of(None, []) == ["n1", "n2", "n3", "n4"]
    assert names_of(None, ["n1", "n2", "n3"]) == ["n1", "n2", "n3"]
    assert names_of(None, ["n1", "n10", "n3"]) == ["n1", "n3", "n10"]  # one has left
    assert names_of(5, ["n1", "n2", "n3"]) == ["n1", "n2", "n3", "n4", "n5"]


def test_nodes_that_a_file_named_need_that_file() -> None:
    with pytest.raises(CommandFailed, match="the nodes here are paris, rome: give the file"):
        names_of(None, ["paris", "rome"])
