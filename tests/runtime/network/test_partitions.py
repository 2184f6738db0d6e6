"""Two halves of a network go on without each other, with real processes; then they meet again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.links import Link
from tests.runtime.network.processes import Network, patiently
from tests.runtime.waiting import eventually

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]

NODES = ("n1", "n2", "n3", "n4")


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    with Network(tmp_path, 4, doors=True) as made:
        yield made


def names(network: Network, at: str, what: str) -> dict[str, str]:
    told = patiently(lambda: network.ask(at, "GET", f"/{what}")).json()
    return {row["name"]: row["node"] for row in told}


def agree(network: Network, what: str, name: str, owners: tuple[str, str]) -> dict[str, str]:
    """All nodes list the same in the end: one has the name, the other one is `name@node`."""
    first, second = owners
    ways = [{name: a, f"{name}@{b}": b} for a, b in ((first, second), (second, first))]

    def is_so() -> bool:
        told = [names(network, n, what) for n in NODES]
        return told[0] in ways and all(other == told[0] for other in told)

    eventually(is_so)
    return names(network, "n1", what)


def numbers(network: Network, at: str, stream: str, times: range) -> None:
    rows = [{"t": t} for t in times]
    network.push([at], stream, rows, f"{at}{times.start}")


def said(network: Network, at: str, query: str) -> list[Any]:
    return [row for _, _, (row,) in network.said(query, at)]


def test_two_proxies_give_one_name_on_both_sides_of_a_partition(network: Network) -> None:
    assert network.doors is not None
    network.doors.part(("n1", "n2"), ("n3", "n4"), Link.refuse)
    # Each side makes, drops and makes again; nobody can know of the other.
    for home, proxy, factor in (("n1", "n2", 10), ("n3", "n4", 1000)):
        network.cql(home, "CREATE STREAM Log (t BIGINT) TIMESTAMP BY t")
        network.cql(proxy, "CREATE QUERY best AS SELECT ISTREAM t FROM Log [Now]")
        numbers(network, home, "Log", range(5))
        network.cql(proxy, "DROP QUERY best")
        text = f"SELECT ISTREAM t * {factor} AS t FROM Log [Now]"
        network.cql(proxy, f"CREATE QUERY best AS {text}")
        numbers(network, home, "Log", range(5, 10))
    network.doors.heal()
    streams = agree(network, "streams", "Log", ("n1", "n3"))
    queries = agree(network, "queries", "best", ("n2", "n4"))
    # Whoever is asked: both go on under their names, with all that was acknowledged.
    for name, at in sorted(streams.items()):
        numbers(network, "n2" if at == "n3" else "n4", name, range(10, 15))
    for name, at in sorted(queries.items()):
        factor = 10 if at == "n2" else 1000
        for asked in NODES:
            eventually(lambda a=asked, n=name: len(said(network, a, n)) >= 8)  # type: ignore[misc]
            rows = said(network, asked, name)
            assert rows == [factor * t for t in range(14 - len(rows), 14)]
            assert rows[0] <= factor * 5, "what was pushed since it was made again"
