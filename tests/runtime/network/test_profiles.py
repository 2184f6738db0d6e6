"""Queries with different rows and columns come and go at a node that has none of the streams: each
says what the same query says at home."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.drawn import examples
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually

from thalweg.engine.site.publications import is_mirror
from thalweg.plan.windows import BEGINNING

STREAMS = """
CREATE STREAM X (k BIGINT, v BIGINT, w VARCHAR, d DECIMAL(9, 2)) TIMESTAMP BY ts BIGINT;
CREATE RELATION Y (k BIGINT, a BIGINT, b VARCHAR) TIMESTAMP BY ts BIGINT;
CREATE QUERY keeps AS SELECT COUNT(*) AS n FROM X [Range 10000] WHERE k < 0;
"""
SELECTS = (
    "SELECT k, COUNT(*) AS n FROM X [Range {r}] WHERE {c} GROUP BY k",
    "SELECT k, MAX(v) AS top FROM X [Range {r}] WHERE {c} GROUP BY k",
    "SELECT w, SUM(d) AS total FROM X [Range {r}] WHERE {c} GROUP BY w",
    "SELECT DISTINCT d FROM X [Range {r}] WHERE {c}",
    "SELECT ISTREAM w, v FROM X [Range {r}] WHERE {c}",
    "SELECT X.v, Y.a FROM X [Range {r}], Y WHERE X.k = Y.k AND X.{c}",
    "SELECT X.w, Y.b FROM X [Range {r}], Y WHERE X.v = Y.a AND X.{c}",
    "SELECT P.d, Q.k FROM X [Range {r}] P, X [Range 3] Q WHERE P.w = Q.w AND P.{c}",
    "SELECT k, COUNT(*) AS n FROM Y WHERE {c} GROUP BY k",
    "SELECT b FROM Y WHERE {c}",
    "SELECT w FROM X [Range {r}] WHERE {c} AND v NOT IN (SELECT a FROM Y)",
    "SELECT k, d FROM X [Rows {r}] WHERE {c}",
)
CONDITIONS = ("k >= 0", "k = 1", "k = 2", "k < 2")

query = st.tuples(
    st.just("query"),
    st.sampled_from(SELECTS),
    st.sampled_from((4, 11)),
    st.sampled_from(CONDITIONS),
)
step = st.one_of(
    query,
    query,
    st.tuples(st.just("push"), st.integers(1, 9)),
    st.tuples(st.just("drop")),
    st.tuples(st.just("restart")),
)


@contextmanager
def two_nodes() -> Iterator[tuple[LiveNode, LiveNode]]:
    with tempfile.TemporaryDirectory() as folder:
        shared = Shared()
        home, away = (LiveNode(n, Path(folder), shared) for n in ("home", "away"))
        try:
            yield home, away
        finally:
            home.close()
            away.close()


class Story:
    def __init__(self, home: LiveNode, away: LiveNode) -> None:
        self.home, self.away, self.now, self.stand = home, away, 0, list[int]()
        self.count = self.last = 0
        home.cql(STREAMS)
        self.push(3)

    def push(self, count: int) -> None:
        first, self.now = self.now, self.now + count
        x = [
            {"ts": t, "k": t % 3, "v": t % 5, "w": f"w{t % 4}", "d": f"{t % 7}.5"}
            for t in range(first, self.now)
        ]
        self.home.push("X", *x)
        y = [
            {"ts": t, "op": "+", "k": t % 3, "a": t % 4, "b": f"b{t % 2}"}
            for t in range(first, self.now)
        ]
        old = [{**row, "op": "-", "ts": row["ts"] + 1} for row in y if row["ts"] % 4 == 1]  # type: ignore[operator]
        self.home.push("Y", *sorted((*y, *old), key=lambda row: row["ts"]))  # type: ignore[arg-type,return-value]
        self.last, self.now = self.now - 1, self.now + 1

    def query(self, select: str, reach: int, condition: str) -> None:
        text = select.format(r=reach, c=condition)
        for node, name in ((self.home, "here"), (self.away, "there")):
            node.cql(f"CREATE QUERY {name}{self.count} AS {text}")
        self.stand.append(self.count)
        self.count += 1

    def drop(self) -> None:
        if self.stand:
            self.push(1)
            gone = self.stand.pop(0)
            self.check(gone)
            for node, name in ((self.home, "here"), (self.away, "there")):
                node.cql(f"DROP QUERY {name}{gone}")

    def restart(self) -> None:
        self.away.close()
        self.away.open()

    def end(self) -> None:
        self.now += 100
        self.push(1)
        for number in self.stand:
            self.check(number)

    def check(self, number: int) -> None:
        """From where both have begun on, up to the newest tuple."""
        runs = [(self.home, f"here{number}"), (self.away, f"there{number}")]
        for node, name in runs:
            eventually(lambda n=node, q=name: _reached(n, q) >= self.last, 60)  # type: ignore[misc]
        start = max(_started(node, name) for node, name in runs)
        here, there = (_said(node, name, start, self.last) for node, name in runs)
        assert here == there, f"{number} from {start} to {self.last}"


def _started(node: LiveNode, query: str) -> int:
    run = node.node.site.engine.roster_entry(query)
    assert run is not None
    return BEGINNING if run.started is None else run.started


def _reached(node: LiveNode, query: str) -> int:
    site = node.node.site
    return site.reader(site.query(query)).frontier().instant


def _said(node: LiveNode, query: str, start: int, upto: int) -> tuple[Counter[str], list[object]]:
    """What it holds at an instant, and its changes from there on."""
    held, later = Counter[str](), list[object]()
    is_stream = node.node.site.query(query).plan.is_stream
    for row in node.rows(query):
        ts, values = int(row["ts"]), str(row["row"])
        if ts <= start and not is_stream:
            held[values] += 1 if row["op"] == "+" else -1
        elif start < ts < upto:
            later.append((ts, row["op"], values))
    return +held, later


@settings(
    max_examples=examples(2),
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(step, min_size=8, max_size=14))
def test_a_query_says_what_it_says_at_home(steps: list[tuple]) -> None:  # type: ignore[type-arg]
    with two_nodes() as (home, away):
        story = Story(home, away)
        for what, *told in steps:
            getattr(story, what)(*told)
        story.end()


@pytest.fixture
def nodes() -> Iterator[tuple[LiveNode, LiveNode]]:
    with two_nodes() as made:
        yield made


def test_only_columns_that_somebody_reads_are_sent(nodes: tuple[LiveNode, LiveNode]) -> None:
    home, away = nodes
    story = Story(home, away)

    def sent(stream: str) -> list[str]:
        (made,) = [s for s in away.node.site.catalog.streams() if s.name == stream]
        assert is_mirror(made)
        eventually(lambda: len(away.node.mirrors.routes(made)) == 1)
        (route,) = away.node.mirrors.routes(made)
        query = home.node.data.publications.query(route.publication)
        return [f.name for f in query.plan.schema if not f.name.startswith("_")]

    story.query(SELECTS[0], 10, "k >= 0")
    assert sent("X") == ["k"]
    assert "columns k" in away.http.get("/queries/there0/placed").text
    story.push(5)
    story.query(SELECTS[2], 5, "k = 1")
    story.push(5)
    assert sent("X") == ["k", "w", "d"]
    story.query(SELECTS[8], 5, "k = 1")
    assert sent("Y") == ["k"]
    story.query(SELECTS[10], 5, "k = 1")
    story.push(5)
    assert sent("Y") == ["k", "a"]
    assert sent("X") == ["k", "v", "w", "d"]
    story.end()


def test_a_select_is_answered_at_home_though_some_of_it_is_here(
    nodes: tuple[LiveNode, LiveNode],
) -> None:
    home, away = nodes
    story = Story(home, away)
    story.query(SELECTS[9], 5, "k = 1")
    story.push(3)
    eventually(lambda: _reached(away, "there0") >= story.last)
    text = "SELECT k, a FROM Y"
    here, there = (n.http.post("/query", content=text).json()["rows"] for n in (home, away))
    assert here == there != []


def test_columns_of_a_stream_that_has_ended_are_refused(nodes: tuple[LiveNode, LiveNode]) -> None:
    home, away = nodes
    story = Story(home, away)
    story.query(SELECTS[8], 5, "k = 1")
    home.http.post("/streams/Y/finish").raise_for_status()
    eventually(lambda: _reached(away, "there0") >= 2**61)
    answer = away.http.post("/queries", json={"cql": "CREATE QUERY late AS SELECT b FROM Y"})
    assert answer.status_code == 409
    assert "Y has ended, and what is here of it was for other queries" in answer.json()["detail"]
    assert home.http.get("/network/publications").json() == ["pub/Y>away.1"]
