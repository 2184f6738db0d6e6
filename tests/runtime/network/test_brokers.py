"""Real processes: streams that come by way of a broker, which is killed, paused, and gone.

`THALWEG_FAULTS=1` (`make soak`) strikes at every moment, and pauses for half a minute.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.network.processes import Network, patiently
from tests.runtime.waiting import eventually

from thalweg.cli.network.running import Wanted
from thalweg.engine.site import IN_PROCESS

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]

EVERY = "THALWEG_FAULTS" in os.environ
KINDS = ("restarted", "gone", "paused") if EVERY else ("gone",)
MOMENTS = ("before rows", "among rows", "while it hangs up") if EVERY else ("among rows",)
PAUSE_S = 30.0 if EVERY else 8.0  # longer than a parent may be silent
RANGES = {"n3": (0, 7), "n4": (4, 10)}


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    folder: Path = tmp_path_factory.mktemp("network")
    wanted = [
        Wanted("n1", "a", IN_PROCESS, trees="nearest"),
        Wanted("n2", "b", engine="none", trees="nearest"),
        Wanted("n3", "b", IN_PROCESS, trees="nearest"),
        Wanted("n4", "b", IN_PROCESS, trees="nearest"),
    ]
    with Network(folder, 4, wanted=wanted) as made:
        yield made


class Case:
    """A stream of numbers at n1, and who reads it at n3 and n4."""

    def __init__(self, network: Network, word: str) -> None:
        network.begin_all()
        self.network, self.stream, self.word, self.pushed = network, f"S{word}", word, 0
        network.cql("n1", f"CREATE STREAM {self.stream} (k BIGINT, t BIGINT) TIMESTAMP BY t")
        for node, (low, high) in RANGES.items():
            network.cql(
                node,
                f"CREATE QUERY {node}{word} AS SELECT ISTREAM k, t FROM {self.stream} [Range 3] "
                f"WHERE k >= {low} AND k < {high}",
            )

    def push(self, upto: int) -> None:
        rows = [{"k": t % 10, "t": t} for t in range(self.pushed, upto)]
        self.network.push(["n1"], self.stream, rows, f"{self.word}{upto}")
        self.pushed = upto

    def tree(self) -> dict[str, str]:
        found = patiently(lambda: self.network.ask("n1", "GET", "/network/trees")).json()
        trees = [t for t in found if t["stream"] == self.stream]
        return {m["node"]: m["parent"] for t in trees for m in t["members"]}

    def hangs(self, node: str, to: str) -> bool:
        """Rows make mirrors go over, so that they have to flow."""
        self.push(self.pushed + 1)
        return self.tree().get(node) == to

    def check(self) -> None:
        self.push(self.pushed + 10)
        for node, (low, high) in RANGES.items():
            name, last = f"{node}{self.word}", self.pushed - 1
            eventually(lambda: self.network.final(name, node) >= last)  # noqa: B023
            said: list[Any] = [row for _, _, row in self.network.said(name, node)]
            assert said == [(t % 10, t) for t in range(last) if low <= t % 10 < high]

    def strike(self, kind: str) -> None:
        if kind == "paused":
            self.network.pause("n2")
            time.sleep(PAUSE_S)
            self.network.go_on("n2")
            return
        self.network.kill("n2")
        if kind == "restarted":
            self.network.begin("n2")


@pytest.mark.parametrize(("kind", "moment"), list(product(KINDS, MOMENTS)))
def test_a_broker_that_fails_leaves_no_trace(network: Network, kind: str, moment: str) -> None:
    case = Case(network, f"{kind}{MOMENTS.index(moment)}")
    if moment != "while it hangs up":
        eventually(lambda: all(case.hangs(node, "n2") for node in RANGES))
    if moment == "among rows":
        case.push(case.pushed + 50)
    case.strike(kind)
    case.push(case.pushed + 50)
    case.check()
    if kind == "gone":
        eventually(lambda: not any(case.hangs(node, "n2") for node in RANGES))
        patiently(lambda: network.ask("n1", "POST", "/network/forget", json={"node": "n2"}))
        shutil.rmtree(network.folder / "n2")
        network.begin("n2")
    eventually(lambda: all(case.hangs(node, "n2") for node in RANGES))
    case.check()


def test_a_broker_has_nothing_of_its_own(network: Network) -> None:
    case = Case(network, "Own")
    refused = network.ask(
        "n2", "POST", "/queries", json={"cql": "CREATE STREAM X (t BIGINT) TIMESTAMP BY t"}
    )
    assert refused.status_code in (400, 409)
    assert "only passes streams on" in refused.text
    text = f"CREATE QUERY elsewhere AS SELECT ISTREAM t FROM {case.stream} [Range 3]"
    for strategy in ("edge", "sqpr"):
        told = network.ask(
            "n2", "POST", "/queries", json={"cql": text}, headers={"thalweg-strategy": strategy}
        )
        assert "only passes streams on" in told.text
    network.cql("n2", text)
    assert {q["name"]: q["node"] for q in network.ask("n2", "GET", "/queries").json()}[
        "elsewhere"
    ] == "n1"
    network.cql(
        "n3",
        f"CREATE QUERY placed AS SELECT ISTREAM a.t FROM {case.stream} [Range 3] a, "
        f"{case.stream} [Range 3] b WHERE a.k = b.k",
        "sqpr",
    )
    assert not network.fragments("n2")


def test_maps_and_explanations_show_the_way(network: Network) -> None:
    case = Case(network, "Way")
    eventually(lambda: all(case.hangs(node, "n2") for node in RANGES))
    told = network.ask("n4", "GET", "/queries/n4Way/placed").text
    assert "SWay from n2, which has it from n1" in told
    (tree,) = [
        t for t in network.ask("n3", "GET", "/network/trees?why=n4").json() if t["stream"] == "SWay"
    ]
    assert tree["why"] == [line for line in tree["why"] if line.startswith("n4 hangs under n2")]
