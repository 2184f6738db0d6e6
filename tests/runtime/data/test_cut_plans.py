"""A plan that is cut anywhere, its parts at nodes of their own, gives the reference's changelog.

Every part runs on an engine of its own. It takes base streams as they come, and what other parts
compute by their publications, each batch of which is repeated. With `THALWEG_CUTS=n` (`make soak`)
every case is cut in n ways; else every eighth in one.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.case_files import Case, all_cases
from tests.conformance.generators import Workload, workloads
from tests.conformance.runner import Inputs, check, check_against_reference
from tests.engine.shared.adapter import Collect, _begin_as, push

from thalweg.cql import compile_script
from thalweg.engine.arrivals import Arrival
from thalweg.engine.changelog import Change
from thalweg.engine.reference import Options
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.site.publications import pieces
from thalweg.engine.sources.feed import Feed
from thalweg.plan.catalog import Catalog, QueryDef, StreamDef
from thalweg.plan.cutting import part_plan, part_schema, places
from thalweg.plan.nodes import Node, base_streams
from thalweg.plan.travelling import plan_of_text, plan_text, rebound
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.fragments import Fragment, cut_plan
from thalweg.runtime.data.messages import Range
from thalweg.runtime.data.mirror import MirrorSource
from thalweg.runtime.data.routes import Route
from thalweg.runtime.data.statements import mirror_text
from thalweg.runtime.network.measuring import NodeMeasure, StreamMeasure
from thalweg.runtime.network.placing.deploying import PLANNED, plan_queries

WAYS = int(os.environ.get("THALWEG_CUTS", "0"))
CASES = all_cases() if WAYS else all_cases()[::8]
PLACED_CASES = all_cases() if WAYS else all_cases()[4::8]
NODES = ("b", "c", "d")


class Part:
    """A fragment on an engine of its own, below a reader or at the top."""

    def __init__(
        self,
        name: str,
        fragment: Fragment,
        folder: Path,
        streams: Mapping[str, StreamDef],
        inputs: Inputs,
        options: Options,
        outlet: Collect | None = None,
    ) -> None:
        folder.mkdir()
        self.below = [
            Part(f"{name}.{i}", given.fragment, folder / str(i), streams, inputs, options)
            for i, given in enumerate(fragment.inputs)
        ]
        mirrors = {
            given.name: _mirror(given.name, given.fragment.node) for given in fragment.inputs
        }
        # As it is sent and kept: as a text, over streams that are looked up.
        known = {**streams, **mirrors}
        plan = rebound(plan_of_text(plan_text(fragment.node)), known.get)
        self.query = QueryDef(name, plan if outlet is not None else part_plan(plan))
        more: dict[str, Any] = {} if outlet is None else {"outlet": outlet}
        self.engine = SharedEngine(folder / "engine", durable=False, **more)
        self.own = [s for s in base_streams(plan) if s.name in streams]
        for stream in base_streams(plan):
            self.engine.add_stream(stream)
        self.engine.add_queries([self.query])
        horizons = options.get("horizons", {})
        own = {s.name: horizons[s.name] for s in self.own if s.name in horizons}
        _begin_as(self.engine, Options(start=options.get("start"), horizons=own))
        for stream in self.own:
            partitions = sorted({a.partition for a in inputs.get(stream.name, ())})
            self.engine.landing.declare(stream, partitions)
        self.sources = {
            n: MirrorSource(m, "home", lambda n=n: (Route(n),), _nobody, lambda: (0, None))  # type: ignore[misc]
            for n, m in mirrors.items()
        }
        self.feeds = {n: Feed(self.engine, m) for n, m in mirrors.items()}

    def take(self, name: str, arrivals: Sequence[Arrival]) -> None:
        for part in self.below:
            part.take(name, arrivals)
        for stream in self.own:
            if stream.name == name:
                if not arrivals:
                    self.engine.finish(name)
                push(self.engine, stream, arrivals)

    def run(self) -> None:
        for part, name in zip(self.below, self.sources, strict=True):
            part.run()
            for piece in pieces(part.engine, part.query, BEGINNING):
                source = self.sources[name]
                source.take(self.feeds[name], Range(piece.low, piece.upto), piece.rows)
        self.engine.run_to_end()

    def close(self) -> None:
        for part in self.below:
            part.close()
        self.engine.close()


def _mirror(name: str, plan: Node) -> StreamDef:
    text = mirror_text(part_schema(plan, name), "home", name)
    (stream,) = compile_script(text).catalog.streams()
    return stream


def _nobody() -> Any:
    raise AssertionError("nobody is asked")


def drawn(plan: Node, chance: random.Random, is_late: bool) -> Fragment:
    """The plan, cut at some of the places that allow it."""
    found = [p for p in places(plan) if not (is_late and p.from_beginning)]
    cuts = chance.sample(found, min(len(found), chance.choice((1, 2, 3))))
    return cut_plan(plan, {c.path: chance.choice(NODES) for c in cuts}, "a")


def deployed(plan: Node, chance: random.Random, is_late: bool) -> Fragment:
    """The plan, its operators where a strategy puts them."""
    nodes = ("a", *NODES)
    streams = base_streams(plan)
    homes = {s.name: chance.choice(nodes) for s in streams}
    measured = [
        NodeMeasure(
            name,
            {
                s.name: StreamMeasure(10 ** chance.uniform(0, 4), 300.0, is_late)
                for s in streams
                if homes[s.name] == name
            },
            {other: 10 ** chance.uniform(0, 2) for other in nodes if other != name},
            0.0,
            0.0,
        )
        for name in nodes
    ]
    strategy = chance.choice(PLANNED)
    planned = plan_queries([QueryDef("q", plan)], strategy, "a", homes, measured)
    planned.check(strategy)
    (placement,) = planned.placements
    assert placement.node == "a"
    return placement.fragment


def cut_up(
    catalog: Catalog,
    queries: Sequence[QueryDef],
    inputs: Inputs,
    options: Options,
    *,
    seed: object,
    tuples_at_once: int = 1,
    how: Callable[[Node, random.Random, bool], Fragment] = drawn,
) -> Mapping[str, list[Change]]:
    outlet = Collect()
    chance = random.Random(repr(seed))
    streams = {s.name: s for s in catalog.streams()}
    is_late = options.get("start") is not None or bool(options.get("horizons"))
    with tempfile.TemporaryDirectory() as folder:
        parts = [
            Part(
                q.name,
                how(q.plan, chance, is_late),
                Path(folder) / str(i),
                streams,
                inputs,
                options,
                outlet,
            )
            for i, q in enumerate(queries)
        ]
        for name, chunk in _arriving(inputs, tuples_at_once):
            for part in parts:
                part.take(name, chunk)
            if name == next(iter(inputs)):
                for part in parts:
                    part.run()
        for part in parts:
            part.run()
            part.close()
    return {q.name: outlet.results.get(q.name, []) for q in queries}


def _arriving(inputs: Inputs, at_once: int) -> Iterator[tuple[str, list[Arrival]]]:
    waiting = {name: iter(given) for name, given in inputs.items()}
    while waiting:
        for name, arrivals in list(waiting.items()):
            chunk = list(islice(arrivals, at_once))
            if not chunk:
                del waiting[name]
            yield name, chunk


@pytest.mark.parametrize("way", range(max(WAYS, 1)))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases(case: Case, way: int) -> None:
    check(partial(cut_up, seed=(case.name, way), tuples_at_once=2), case)


@pytest.mark.parametrize("way", range(max(WAYS, 1)))
@pytest.mark.parametrize("case", PLACED_CASES, ids=lambda case: case.name)
def test_cases_where_strategies_put_them(case: Case, way: int) -> None:
    check(partial(cut_up, seed=(case.name, way), tuples_at_once=2, how=deployed), case)


@settings(
    max_examples=100 * WAYS or 10,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
)
@given(
    workloads(queries=2),
    st.sampled_from([1, 3, 1_000]),
    st.integers(0, 1 << 32),
    st.sampled_from([drawn, deployed]),
)
def test_drawn_workloads(
    workload: Workload,
    tuples_at_once: int,
    seed: int,
    how: Callable[[Node, random.Random, bool], Fragment],
) -> None:
    script = workload.script()
    engine = partial(cut_up, seed=seed, tuples_at_once=tuples_at_once, how=how)
    check_against_reference(engine, script.catalog, script.queries, workload.inputs)
