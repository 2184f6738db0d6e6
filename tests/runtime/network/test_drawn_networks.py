"""Drawn networks: streams and queries at any node, operators of queries at others, rows pushed
anywhere, nodes that come and go.

`THALWEG_NETWORKS` says how many (`make soak` draws 200).
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.conformance.generators import Workload, workloads
from tests.conformance.runner import compare, reference_engine
from tests.engine.shared.adapter import changes, push
from tests.runtime.network.nodes import LiveNode, Shared, eventually

from thalweg.cql import compile_script, parse_script, syntax
from thalweg.engine.changelog import Change
from thalweg.engine.reference import Options
from thalweg.plan.catalog import StreamDef
from thalweg.plan.cutting import places
from thalweg.plan.windows import FOREVER
from thalweg.runtime.data.fragments import cut_plan

DRAWN = int(os.environ.get("THALWEG_NETWORKS", "6"))


@contextmanager
def network(count: int) -> Iterator[list[LiveNode]]:
    with tempfile.TemporaryDirectory() as folder:
        shared = Shared()
        nodes = [LiveNode(f"n{i}", Path(folder), shared) for i in range(count)]
        try:
            yield nodes
        finally:
            for node in nodes:
                node.close()


@settings(
    max_examples=DRAWN,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),  # each example takes seconds: none are shrunk
    suppress_health_check=list(HealthCheck),
)
@given(workloads(queries=3), st.integers(3, 5), st.integers(0, 1 << 32))
def test_a_drawn_network_gives_what_the_reference_gives(
    workload: Workload, count: int, seed: int
) -> None:
    script = workload.script()
    expected = reference_engine(script.catalog, script.queries, workload.inputs, Options())
    chance = random.Random(seed)
    with network(count) as nodes:
        homes = _define(workload.text, nodes, chance)
        _feed(workload, homes, nodes, chance)
        runs = {name: node for name, node in homes.items() if name in expected}
        for query in script.queries:
            node = runs[query.name]
            eventually(lambda n=node, q=query.name: _is_done(n, q), 120)  # type: ignore[misc]
            report = compare(query, expected[query.name], _said(node, query.name))
            assert not report, f"{report}\n{workload}\nseed {seed}, {count} nodes"


def _define(text: str, nodes: list[LiveNode], chance: random.Random) -> dict[str, LiveNode]:
    """Each statement at a node of its own choice; where everything is."""
    homes: dict[str, LiveNode] = {}
    for statement in parse_script(text):
        node = chance.choice(nodes)
        _execute(statement, text[slice(*statement.span)], node, nodes, chance)
        assert statement.name is not None
        homes[statement.name.text] = node
    return homes


def _execute(
    statement: syntax.Statement,
    text: str,
    node: LiveNode,
    nodes: list[LiveNode],
    chance: random.Random,
) -> None:
    """At the node; of a query, some operators at others."""
    if not isinstance(statement, syntax.CreateQuery):
        node.cql(text)
        return
    plan = compile_script(text, node.node.catalog()).queries[0].plan
    found = list(places(plan))
    cuts = chance.sample(found, min(len(found), chance.choice((0, 1, 2, 3))))
    at = {c.path: chance.choice(nodes).name for c in cuts}
    node.node.place(text, cut_plan(plan, at, node.name))


def _feed(
    workload: Workload,
    homes: dict[str, LiveNode],
    nodes: list[LiveNode],
    chance: random.Random,
) -> None:
    streams: dict[str, StreamDef] = {s.name: s for s in workload.script().catalog.streams()}
    for name, arrivals in workload.inputs.items():
        engine = homes[name].node.site.engine
        engine.landing.declare(streams[name], sorted({a.partition for a in arrivals}))
    waiting = {name: iter(arrivals) for name, arrivals in workload.inputs.items()}
    while waiting:
        for name, arrivals in list(waiting.items()):
            chunk: Sequence = list(islice(arrivals, chance.choice((1, 2, 4))))
            site = homes[name].node.site
            push(site.engine, streams[name], chunk)
            if not chunk:
                site.finish(name)
                del waiting[name]
            site.ticker.wake()
        if chance.random() < 0.3:
            node = chance.choice(nodes)
            node.close()
            node.open()


def _is_done(node: LiveNode, query: str) -> bool:
    site = node.node.site
    return site.reader(site.query(query)).frontier().instant >= FOREVER


def _said(node: LiveNode, query: str) -> list[Change]:
    return [c for page in node.node.site.results(query) for c in changes(page.emission.rows)]
