"""Workloads on live nodes of this process: nodes, rows pushed at streams' homes, the judgement."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from tests.conformance.generators import Workload
from tests.conformance.runner import compare, reference_engine
from tests.engine.shared.adapter import changes, push
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually

from thalweg.engine.changelog import Change
from thalweg.engine.reference import Options
from thalweg.engine.shared.tick.shaping.policy import Policy
from thalweg.plan.catalog import StreamDef
from thalweg.plan.windows import FOREVER

Homes = Mapping[str, LiveNode]  # of streams and queries, by name


@contextmanager
def network(
    count: int, shared: Shared | None = None, shapes: Policy | None = None
) -> Iterator[list[LiveNode]]:
    """`shapes` decides which intermediates joins keep."""
    known = shared or Shared()
    with tempfile.TemporaryDirectory() as folder:
        nodes = [LiveNode(f"n{i}", Path(folder), known, shapes=shapes) for i in range(count)]
        try:
            yield nodes
        finally:
            for node in nodes:
                node.close()


def restart(node: LiveNode) -> None:
    node.close()
    node.open()


def feed(
    workload: Workload, homes: Homes, chance: random.Random, meanwhile: Callable[[], None]
) -> None:
    """A few rows of each stream, then whatever happens meanwhile, until all streams have ended."""
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
        meanwhile()


def judge(workload: Workload, homes: Homes, told: str) -> None:
    """Once everything has ended, each query's changelog is the reference's."""
    script = workload.script()
    expected = reference_engine(script.catalog, script.queries, workload.inputs, Options())
    for query in script.queries:
        node = homes[query.name]
        eventually(lambda n=node, q=query.name: _is_done(n, q), 240)  # type: ignore[misc]
        report = compare(query, expected[query.name], said(node, query.name))
        assert not report, f"{report}\n{workload}\n{told}"


def _is_done(node: LiveNode, query: str) -> bool:
    site = node.node.site
    return site.reader(site.query(query)).frontier().instant >= FOREVER


def said(node: LiveNode, query: str) -> list[Change]:
    return [c for page in node.node.site.results(query) for c in changes(page.emission.rows)]
