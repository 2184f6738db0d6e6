"""A node on Structured Streaming among others, as processes, killed in the middle.

Spark takes long to start: it runs with THALWEG_NATIVE_NODES=1 (`make soak`).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.runtime.network.processes import Network, patiently
from tests.runtime.network.test_computing import COUNT, JOIN, STREAMS, A, B, _expected
from tests.runtime.waiting import eventually

from thalweg.cli.network.running import Wanted

pytestmark = pytest.mark.skipif(
    "THALWEG_NATIVE_NODES" not in os.environ, reason="Spark at a node takes minutes"
)
NODES = (
    Wanted("n1", master="in-process"),
    Wanted("n2", master="local[1]", engine="native"),
)


def test_a_native_node_that_is_killed_goes_on_row_for_row(tmp_path: Path) -> None:
    with Network(tmp_path, wanted=NODES) as network:
        network.cql("n1", STREAMS)
        network.cql("n2", f"CREATE QUERY q AS {JOIN}; CREATE QUERY c AS {COUNT}")
        for number in range(3):
            rows = slice(10 * number, 10 * number + 10)
            network.push(["n1"], "A", A[rows], f"a{number}")
            network.push(["n1"], "B", B[rows], f"b{number}")
            if number == 0:
                eventually(lambda: network.final("q", "n1") >= 9)
            if number < 2:
                network.kill("n2")  # before, in or after what Spark does with these
                network.begin("n2")
        for stream in ("A", "B"):
            patiently(lambda s=stream: network.ask("n1", "POST", f"/streams/{s}/finish"))
        eventually(lambda: _state(network, "q") == _state(network, "c") == "finished")
        assert network.said("q", "n1") == _expected(JOIN)
        assert network.said("c", "n1") == _expected(COUNT)
        told = network.ask("n1", "GET", "/queries/c/placed").text
        assert "native can't run an aggregate" in told
        assert "computed by native" in network.ask("n1", "GET", "/queries/q/placed").text


def _state(network: Network, query: str) -> str:
    found: str = patiently(lambda: network.ask("n1", "GET", f"/queries/{query}")).json()["state"]
    return found
