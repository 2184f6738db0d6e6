"""A query that is spread over processes, one of which is killed (`kill -9`): no row shows it.

It is killed while buckets move, too; behind `THALWEG_FAULTS=1` (`make soak`) each role is, and a
part's node does not come back.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.runtime.network.placing.test_spreading import QUERY, STREAMS, bids, expected, sold
from tests.runtime.network.processes import Network, patiently
from tests.runtime.waiting import eventually

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]

EVERY = "THALWEG_FAULTS" in os.environ
# Streams are at n1, parts at n2 and n3, where the query stands; buckets go from n2 to n1.
KILLED = ("n2", "n1", "n3") if EVERY else ("n2",)


def spread(network: Network) -> None:
    network.cql("n1", STREAMS)
    with httpx.Client(base_url=network.nodes["n3"].url, trust_env=False, timeout=300) as client:
        headers = {"thalweg-spread": "n2,n3/4"}
        answer = client.post("/queries", json={"cql": QUERY}, headers=headers)
    assert answer.is_success, answer.text
    push(network, 1, 60)
    eventually(lambda: said(network) == expected(60), 300)


def push(network: Network, low: int, high: int) -> None:
    for stream, rows in (("Bids", bids(low, high)), ("Sold", sold(low, high))):
        network.push(["n1"], stream, rows, f"{stream}-{low}")


def said(network: Network) -> list[tuple[Any, ...]]:
    return sorted(network.said("sales", "n3"))


@pytest.mark.parametrize("killed", KILLED)
def test_whoever_is_killed_while_buckets_move_no_row_shows_it(tmp_path: Path, killed: str) -> None:
    with Network(tmp_path, 3, "--gone-after-s", "600") as network:
        spread(network)
        asked = {"what": "sales", "to": "n1", "buckets": "0-31"}
        patiently(lambda: network.ask("n3", "POST", "/network/moves", json=asked))
        time.sleep(0.2)
        network.kill(killed)
        network.begin(killed)
        push(network, 60, 90)
        eventually(lambda: said(network) == expected(90), 300)


@pytest.mark.skipif(not EVERY, reason="THALWEG_FAULTS=1 kills for good, too")
def test_a_part_whose_node_is_gone_for_good_goes_on_at_the_reader(tmp_path: Path) -> None:
    with Network(tmp_path, 3, "--gone-after-s", "2") as network:
        spread(network)
        network.kill("n2")
        push(network, 60, 90)
        eventually(lambda: said(network) == expected(90), 300)
        del network.nodes["n2"]
