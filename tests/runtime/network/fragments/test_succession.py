"""A fragment's node is gone for good: its reader goes on, and no row shows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.runtime.network.auctions import LOSSY, Auctions
from tests.runtime.network.processes import Network, patiently
from tests.runtime.waiting import eventually

from thalweg.plan.nodes import Join

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    folder: Path = tmp_path_factory.mktemp("network")
    with Network(folder, 4, "--gone-after-s", "0.5") as made:
        yield made


@pytest.fixture(autouse=True)
def _all_are_there(network: Network) -> None:
    network.begin_all()


def test_a_fragment_goes_on_at_its_reader(network: Network) -> None:
    auctions = Auctions(network, "A")
    auctions.place("n4")
    assert len(network.fragments("n4")) >= 2
    auctions.push(100)
    auctions.reaches(50)
    network.kill("n4")
    auctions.push(160)
    eventually(lambda: len(network.fragments("n3")) >= 2)
    auctions.push(220)
    auctions.check()
    assert "from n3" in network.ask("n1", "GET", "/queries/joinedA/placed").text
    # What was computed there is not computed again when it is back: it is told to stop.
    network.begin("n4")
    eventually(lambda: network.fragments("n4") == [])
    auctions.push(300)
    auctions.check()


def test_one_that_was_only_silent_can_not_go_on(network: Network) -> None:
    auctions = Auctions(network, "B")
    auctions.place("n4")
    before = len(network.fragments("n3"))
    auctions.push(60)
    network.pause("n4")
    auctions.push(120)
    eventually(lambda: len(network.fragments("n3")) >= before + 2)
    network.go_on("n4")
    auctions.push(200)
    auctions.check()
    eventually(lambda: network.fragments("n4") == [])


def test_a_fragment_that_never_spoke_begins_elsewhere(network: Network) -> None:
    auctions = Auctions(network, "C")
    auctions.place("n4")
    network.kill("n4")
    auctions.push(100)
    auctions.check()


def test_what_can_not_be_rebuilt_is_lost_from_an_instant_on(network: Network) -> None:
    auctions = Auctions(network, "D")
    auctions.place_text("few", LOSSY, {Join: "n4"})
    auctions.push(60)
    auctions.reaches(59, "few")
    before = auctions.said("few")
    assert before == auctions.expected(LOSSY)
    network.kill("n4")
    auctions.push(90)

    def forget() -> httpx.Response:
        answer = network.ask("n1", "POST", "/network/forget", json={"node": "n4"})
        return httpx.Response(503) if answer.status_code == 409 else answer  # not down yet

    patiently(forget)

    def few() -> dict[str, Any]:
        found: dict[str, Any] = patiently(lambda: network.ask("n1", "GET", "/queries/fewD")).json()
        return found

    eventually(lambda: few()["state"] == "lost")
    assert "lost from instant 59 on: node n4 is gone" in few()["error"]
    assert "lost from instant 59 on" in network.ask("n1", "GET", "/queries/fewD/placed").text
    assert auctions.said("few") == before
    network.kill("n3")  # and it is still said after a restart
    network.begin("n3")
    eventually(lambda: few()["state"] == "lost")
    network.cql("n3", "DROP QUERY fewD")
