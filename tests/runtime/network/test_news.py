"""What has just been made or changed at another node is known when a statement needs it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.runtime.network.nodes import LiveNode, Shared, SharedDirectory
from tests.runtime.waiting import eventually

from thalweg.runtime.network.directory import Defined


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[LiveNode, LiveNode]]:
    shared = Shared()
    made = LiveNode("home", tmp_path, shared), LiveNode("away", tmp_path, shared)
    yield made
    for node in made:
        node.close()


class Late(SharedDirectory):
    """Hears of nothing new for a while."""

    def __init__(self, of: SharedDirectory, seconds: float) -> None:
        super().__init__(of.shared, of.me)
        self._known, self._told = of.defined(), threading.Event()
        threading.Timer(seconds, self._told.set).start()

    def defined(self) -> Mapping[str, Defined]:
        return super().defined() if self._told.is_set() else self._known


def make_late(node: LiveNode, seconds: float) -> None:
    assert isinstance(node.node.directory, SharedDirectory)
    node.node.directory = Late(node.node.directory, seconds)


def test_a_stream_that_was_just_made_elsewhere_is_read_and_fed(
    nodes: tuple[LiveNode, LiveNode],
) -> None:
    home, away = nodes
    make_late(away, 1.0)
    home.cql("CREATE STREAM Fresh (k BIGINT) TIMESTAMP BY ts BIGINT")
    away.cql("CREATE QUERY q AS SELECT k FROM Fresh [Now]")
    make_late(away, 1.0)
    home.cql("CREATE STREAM Fresher (k BIGINT) TIMESTAMP BY ts BIGINT")
    away.push("Fresher", {"ts": 1, "k": 1})
    make_late(away, 1.0)
    home.cql("CREATE STREAM Freshest (k BIGINT) TIMESTAMP BY ts BIGINT")
    pieces = [
        {"cql": f"CREATE QUERY b{i} AS SELECT k FROM Freshest [Now]", "name": f"{i}.cql"}
        for i in range(2)
    ]
    told = away.http.post("/queries/bulk", json={"texts": pieces}).json()
    assert told.get("failed") == 0, told


def test_a_stream_that_nobody_has_is_refused_at_once(nodes: tuple[LiveNode, LiveNode]) -> None:
    _, away = nodes
    answer = away.http.post("/queries", json={"cql": "CREATE QUERY q AS SELECT k FROM Nobody"})
    assert answer.status_code == 422
    assert away.http.post("/streams/Nobody/tuples", json=[]).status_code == 404


@pytest.mark.parametrize("kind", ["stream", "relation"])
def test_a_column_that_was_added_is_seen_by_nodes_that_read_the_stream(
    nodes: tuple[LiveNode, LiveNode], kind: str
) -> None:
    home, away = nodes
    window = " [Range 50]" if kind == "stream" else ""
    more = {} if kind == "stream" else {"op": "+"}

    def both(name: str, select: str) -> None:
        for node, prefix in ((home, "here"), (away, "there")):
            node.cql(f"CREATE QUERY {prefix}{name} AS {select}")

    home.cql(f"CREATE {kind.upper()} X (k BIGINT, v BIGINT) TIMESTAMP BY ts BIGINT")
    both("before", f"SELECT * FROM X{window}")
    home.push("X", *({"ts": t, "k": t, "v": t, **more} for t in range(5)))
    make_late(away, 1.0)
    home.cql(f"ALTER {kind.upper()} X ADD COLUMN e VARCHAR")
    home.push("X", *({"ts": t, "k": t, "v": t, "e": f"e{t}", **more} for t in range(5, 8)))
    both("after", f"SELECT e, k FROM X{window}")
    both("all", f"SELECT * FROM X{window} WHERE k > 2")
    away.close()
    away.open()
    home.push("X", *({"ts": t, "k": t, "v": t, "e": f"e{t}", **more} for t in range(8, 12)))

    def said(node: LiveNode, query: str) -> list[tuple[object, ...]]:
        rows = [r for r in node.rows(query) if int(r["ts"]) < 11]
        return sorted((str(r["row"]), r["op"]) for r in rows)

    def reached(node: LiveNode, query: str) -> int:
        site = node.node.site
        return site.reader(site.query(query)).frontier().instant

    for name in ("before", "after", "all"):
        for node, prefix in ((home, "here"), (away, "there")):
            eventually(lambda n=node, q=prefix + name: reached(n, q) >= 11, 60)  # type: ignore[misc]
        assert said(home, f"here{name}") == said(away, f"there{name}") != []
    columns = {"before": ["k", "v"], "after": ["e", "k"], "all": ["k", "v", "e"]}
    for name, expected in columns.items():
        assert list(away.values(f"there{name}")[0]) == expected
    assert away.values("thereafter")[-1] == {"e": "e10", "k": 10}
