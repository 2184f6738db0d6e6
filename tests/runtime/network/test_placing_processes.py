"""Real processes place queries together, while the one who decides, or runs, is killed.

`THALWEG_FAULTS=1` (`make soak`) runs them: they wait for leases to end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.network.processes import Network, patiently
from tests.runtime.network.test_placing_together import JOINED, QUERIES, STREAMS, expected, rows
from tests.runtime.waiting import eventually

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.timeout(900),
    pytest.mark.skipif("THALWEG_FAULTS" not in os.environ, reason="it waits for leases to end"),
]

STRATEGIES = ("edge", "edge+", "in-network", "cosmos")
HOMES, ASKED, OTHERS = ("n1", "n2"), "n3", ("n4", "n5")


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    with Network(tmp_path, 5, "--planning", "protocol", "--gone-after-s", "3") as made:
        for home, text in zip(HOMES, STREAMS.values(), strict=True):
            made.cql(home, text)
        yield made


def coordinators(network: Network) -> dict[str, dict[str, Any]]:
    told = patiently(lambda: network.ask(ASKED, "GET", "/network/coordinators")).json()
    return {row["node"]: row for row in told}


def agree(network: Network, nodes: int) -> bool:
    """On one tree."""
    told = coordinators(network).values()
    return len(told) == nodes and len({row["root"] for row in told}) == 1


def push(network: Network, begin: int, end: int) -> None:
    for home, (stream, new) in zip(HOMES, rows(begin, end).items(), strict=True):
        network.push([home], stream, new, f"{stream}-{begin}")


def check(network: Network, name: str, text: str, upto: int) -> None:
    eventually(lambda: network.final(name, ASKED) >= upto - 2)
    found = sorted(row for row in network.said(name, ASKED) if row[0] < upto - 2)
    assert found == expected(text, upto), name


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_coordinator_that_is_killed_while_queries_are_placed(
    network: Network, strategy: str
) -> None:
    """It is of no other use, and does not come back."""
    eventually(lambda: agree(network, 5))
    names = list(QUERIES)
    for name in names[:2]:
        network.cql(ASKED, f"CREATE QUERY {name} AS {QUERIES[name]}", strategy)
    push(network, 1, 40)
    victim = max(OTHERS, key=lambda n: (len(coordinators(network)[n]["zones"]), n))
    network.kill(victim)
    for name in names[2:]:  # homes hold what it reads from now on; nothing is cut off at 40
        network.cql(ASKED, f"CREATE QUERY {name} AS {QUERIES[name]}", strategy)
    push(network, 40, 80)
    for name in names[:2]:
        check(network, name, QUERIES[name], 80)
    for name in names[2:]:
        eventually(lambda n=name: network.final(n, ASKED) >= 78)  # type: ignore[misc]
    eventually(lambda: agree(network, 4))
    told = patiently(lambda: network.ask(ASKED, "GET", f"/queries/{names[2]}/placed")).text
    assert f"by {victim}:" not in told


def test_the_owner_of_a_query_is_killed_and_its_coordinators_find_another(
    network: Network,
) -> None:
    eventually(lambda: agree(network, 5))
    queries = {f"q{i}": JOINED.replace("> 2", f"> {i % 4}") for i in range(8)}
    for name, text in queries.items():
        network.cql(ASKED, f"CREATE QUERY {name} AS {text}", "cosmos")
    owners = {n: row["queries"] for n, row in coordinators(network).items()}
    assert sorted(q for found in owners.values() for q in found) == sorted(queries)
    victim = max(OTHERS, key=lambda n: len(owners[n]))
    assert owners[victim]
    push(network, 1, 40)
    for name in queries:
        eventually(lambda n=name: network.final(n, ASKED) >= 38)  # type: ignore[misc]
    network.kill(victim)
    push(network, 40, 80)

    def others_have_all() -> bool:
        now = {n: row["queries"] for n, row in coordinators(network).items()}
        return victim not in now and sorted(q for x in now.values() for q in x) == sorted(queries)

    eventually(others_have_all)
    push(network, 80, 120)
    for name, text in queries.items():
        check(network, name, text, 120)

    def follows() -> bool:
        now = coordinators(network)
        owner = {q: n for n, row in now.items() for q in row["queries"]}
        for query in queries:
            path = f"/queries/{query}/placed?format=json"
            told = patiently(lambda p=path: network.ask(ASKED, "GET", p)).json()  # type: ignore[misc]
            if [given["from"] for given in told["inputs"]] != [owner.get(query)]:
                return False
        return True

    eventually(follows)


@pytest.mark.parametrize("strategy", ["edge+", "cosmos"])
def test_a_proxy_that_is_killed_while_it_places_a_query_leaves_all_of_it_or_nothing(
    network: Network, strategy: str
) -> None:
    eventually(lambda: agree(network, 5))
    names = []
    for moment_s in (0.02, 0.1, 0.3, 0.6):
        names.append(f"q{len(names)}")
        headers = {"thalweg-strategy": strategy}
        body = {"cql": f"CREATE QUERY {names[-1]} AS {JOINED}"}
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(network.ask, ASKED, "POST", "/queries", json=body, headers=headers)
            time.sleep(moment_s)
            network.kill(ASKED)
            asked.exception(60)  # it may have been answered
        network.begin(ASKED)
    listed = patiently(lambda: network.ask(ASKED, "GET", "/queries")).json()
    standing = {row["name"] for row in listed}

    def known() -> set[str]:
        """Of which queries nodes still decide something."""
        told = coordinators(network).values()
        zones = {zone["query"] for row in told for zone in row["zones"]}
        return zones | {query for row in told for query in row["queries"]}

    eventually(lambda: known() == standing)
    network.cql(ASKED, f"CREATE QUERY last AS {JOINED}", strategy)
    push(network, 1, 40)
    for name in (*standing, "last"):
        check(network, name, JOINED, 40)
    for name in (*standing, "last"):
        network.cql(ASKED, f"DROP QUERY {name}")
    for node in (*HOMES, ASKED, *OTHERS):
        eventually(lambda n=node: network.fragments(n) == [])  # type: ignore[misc]
    eventually(lambda: known() == set())
