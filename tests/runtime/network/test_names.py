"""One name, two definitions, given by nodes that could not know of each other: the second one is
`name@node`, and is used under that name at any node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually

LOG = "CREATE STREAM Log (t BIGINT) TIMESTAMP BY t"


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[LiveNode, LiveNode, LiveNode]]:
    """Both a and b have a Log; that of a was first. The third node knows both."""
    shared = Shared()
    a, b, c = made = tuple(LiveNode(name, tmp_path, shared) for name in ("a", "b", "c"))
    a.cql(LOG)
    first = shared.entries.pop("log")
    b.cql(LOG)
    second = shared.entries["log"]
    shared.entries["log"] = first
    shared.entries["log@b"] = structs.replace(second, name="Log@b", own_name="Log")
    yield a, b, c
    for node in made:
        node.close()


def refused(node: LiveNode, text: str, strategy: str = "local") -> str:
    headers = {"thalweg-strategy": strategy}
    answer = node.http.post("/queries", json={"cql": text}, headers=headers)
    assert not answer.is_success
    return str(answer.json()["detail"])


def rows(*times: int) -> list[dict[str, int]]:
    return [{"t": t} for t in times]


def test_both_are_listed_fed_and_read_whoever_is_asked(
    nodes: tuple[LiveNode, LiveNode, LiveNode],
) -> None:
    a, b, c = nodes
    for node in nodes:
        assert node.names("streams") == {"Log": "a", "Log@b": "b"}
    c.cql("CREATE QUERY first AS SELECT ISTREAM t FROM Log [Now]")
    b.cql('CREATE QUERY second AS SELECT ISTREAM t + 100 AS t FROM "log@B" [Now]')
    a.push("Log@b", *rows(1, 2, 3))
    b.push("Log", *rows(7, 8, 9))
    for node in nodes:
        eventually(lambda n=node: n.values("first") == rows(7, 8))  # type: ignore[misc]
        eventually(lambda n=node: n.values("second") == rows(101, 102))  # type: ignore[misc]
        told = node.http.get("/streams/Log@b").json()
        assert told["watermark"] is not None


@pytest.mark.parametrize("name", ["pub/x", "due/x", "fragment/x", "group/x"])
def test_names_of_the_system_are_refused(tmp_path: Path, name: str) -> None:
    node = LiveNode("a", tmp_path, Shared())
    try:
        node.cql(LOG)
        text = f'CREATE QUERY "{name}" AS SELECT t FROM Log'
        answer = node.http.post("/queries", json={"cql": text})
        assert answer.status_code == 409
        assert "names that begin with" in answer.json()["detail"]
        assert node.http.get("/queries").json() == []
    finally:
        node.close()


def test_what_a_name_means_elsewhere_is_not_mistaken_for_what_is_here(
    nodes: tuple[LiveNode, LiveNode, LiveNode],
) -> None:
    _, b, c = nodes
    text = "CREATE QUERY q AS SELECT ISTREAM t FROM {} [Now]"
    assert "submit this at a (--at a)" in refused(b, text.format("Log"))
    assert "submit this at b (--at b)" in refused(c, text.format('"Log@b"'))
    assert "--strategy local" in refused(b, text.format('"Log@b"'), "edge")
    for node in nodes:
        assert node.names("queries") == {}


def test_it_is_dropped_by_its_new_name_and_the_other_stays(
    nodes: tuple[LiveNode, LiveNode, LiveNode],
) -> None:
    a, b, c = nodes
    b.cql('CREATE QUERY second AS SELECT ISTREAM t FROM "Log@b" [Now]')
    c.cql('DROP QUERY second; DROP STREAM "Log@b"')
    for node in nodes:
        assert node.names("streams") == {"Log": "a"}
    assert b.node.site.catalog.find("Log") is None
    b.cql("CREATE QUERY now AS SELECT ISTREAM t FROM Log [Now]")
    a.push("Log", *rows(1, 2))
    eventually(lambda: b.values("now") == rows(1))
