"""thalweg size: nodes for a completeness, the reverse, and what is said about bad input."""

import json

import pytest
from typer.testing import CliRunner

from thalweg.cli.main import app
from thalweg.overlay.p2p.sizing import Need, completeness, curve, nodes_for

STREAMS = (
    "CREATE STREAM X (a BIGINT, ts TIMESTAMP) TIMESTAMP BY ts;"
    "CREATE STREAM Y (a BIGINT, ts TIMESTAMP) TIMESTAMP BY ts;"
)
JOIN = "SELECT X.a FROM X [Range 5 Minutes], Y [Range 5 Minutes] WHERE X.a = Y.a"


@pytest.fixture
def size():
    return lambda *words: CliRunner().invoke(app, ["size", *words])


def test_the_sources_example_needs_sixteen_nodes(size):
    """DHTJoin 5.4: W = 5 min, λ = 30/s and 563 tuples a node: 16 nodes."""
    rates = ("--rate", "X=30", "--rate", "Y=30", "--memory", "563")
    result = size(STREAMS + JOIN, *rates, "--completeness", "1")
    assert result.exit_code == 0, result.output
    assert "16 nodes: completeness 1\n" in result.stdout
    assert "█" in result.stdout


def test_nodes_give_a_completeness(size):
    rates = ("--rate", "X=30", "--rate", "Y=60", "--memory", "563")
    found = json.loads(size(STREAMS + JOIN, *rates, "--nodes", "16", "--json").stdout)
    assert found["nodes"] == 16
    assert found["completeness"] == pytest.approx(16 * 563 / 18_000)
    assert found["curve"][-1]["completeness"] == 1.0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((STREAMS + JOIN, "--rate", "X=30", "--memory", "9", "--nodes", "2"), "--rate Y="),
        ((STREAMS + JOIN, "--rate", "x", "--memory", "9", "--nodes", "2"), "STREAM=NUMBER"),
        ((STREAMS + JOIN, "--rate", "3", "--memory", "9"), "either --completeness or --nodes"),
        (
            (STREAMS + "SELECT a FROM X [Now]", "--rate", "3", "--memory", "9", "--nodes", "2"),
            "nothing to join",
        ),
        (
            (
                STREAMS + "SELECT X.a FROM X [Rows 3], Y [Now] WHERE X.a = Y.a",
                *("--rate", "3", "--memory", "9", "--nodes", "2"),
            ),
            "Rows window",
        ),
        (
            (
                STREAMS + "SELECT X.a FROM X [Now], Y [Now] WHERE X.a < Y.a",
                *("--rate", "3", "--memory", "9", "--nodes", "2"),
            ),
            "nothing to hash on",
        ),
    ],
)
def test_bad_input_is_told(size, words, told):
    result = size(*words)
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())


def test_a_share_is_never_above_one():
    """As printed, (4.11) would let one stream's plenty make up for another's want."""
    needs = [Need("X", 1.0, 100.0, 1_000), Need("Y", 1.0, 100.0, 10)]
    assert completeness(needs, 1) == pytest.approx(0.1)
    assert nodes_for(needs, 0.95) == 10
    assert curve(needs)[-1] == (10, 1.0)
