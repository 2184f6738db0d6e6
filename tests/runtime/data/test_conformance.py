"""Streams that are at home elsewhere give the reference's changelog, row for row.

Every stream has a home of its own, and all queries run at a node that has none of them. Only the
rows and columns that some query wants are sent.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import partial, reduce
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.case_files import Case, all_cases
from tests.conformance.generators import Workload, workloads
from tests.conformance.runner import Inputs, check, check_against_reference
from tests.drawn import examples, in_turn
from tests.engine.shared.adapter import Collect, _begin_as, push

from thalweg.cql import compile_script
from thalweg.engine.arrivals import Arrival
from thalweg.engine.changelog import Change
from thalweg.engine.reference import Options
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.site.publications import pieces, publication_text
from thalweg.engine.sources.feed import Feed
from thalweg.plan.catalog import Catalog, QueryDef, StreamDef
from thalweg.plan.nodes import base_streams
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.messages import Range
from thalweg.runtime.data.mirror import MirrorSource
from thalweg.runtime.data.profiles import Profile, profile_of
from thalweg.runtime.data.routes import Route
from thalweg.runtime.data.statements import mirror_text

CASES = all_cases()


class Home:
    """One stream, and the way from it to the node that reads it."""

    def __init__(
        self,
        folder: Path,
        stream: StreamDef,
        partitions: Sequence[int],
        queries: Sequence[QueryDef],
    ) -> None:
        self.stream = stream
        profile = wanted_by(queries, stream)
        self.engine = SharedEngine(folder / stream.name.encode().hex(), durable=False)
        self.engine.add_stream(stream)
        text = publication_text(stream, "pub/it", 0, profile.where, profile.columns)
        catalog = Catalog().with_definition(stream)
        (self.query,) = compile_script(text, catalog).queries
        self.engine.add_queries([self.query])
        self.engine.landing.declare(stream, list(partitions))
        text = mirror_text(stream, "home", "pub/it")
        (self.mirror,) = compile_script(text).catalog.streams()
        routes = (Route("pub/it", profile.where, columns=profile.columns),)
        self.source = MirrorSource(self.mirror, "home", lambda: routes, _nobody, lambda: (0, None))
        self.since = BEGINNING

    def take(self, arrivals: Sequence[Arrival]) -> None:
        if not arrivals:
            self.engine.finish(self.stream.name)
        push(self.engine, self.stream, arrivals)
        self.engine.run_to_end()

    def publish(self, feed: Feed, twice: bool) -> None:
        for piece in pieces(self.engine, self.query, self.since):
            for _ in range(1 + twice):  # a batch that comes again counts once
                self.source.take(feed, Range(piece.low, piece.upto), piece.rows)
            if not twice:
                self.since = piece.upto  # else all of it is read anew


def wanted_by(queries: Sequence[QueryDef], stream: StreamDef) -> Profile:
    """What these queries can need of a stream."""
    found = [profile_of(q.plan, stream) for q in queries if stream in base_streams(q.plan)]
    return reduce(lambda one, other: one.merged(stream, other), found) if found else Profile()


def _nobody() -> Any:
    raise AssertionError("nobody is asked")


def networked(
    catalog: Catalog,
    queries: Sequence[QueryDef],
    inputs: Inputs,
    options: Options,
    *,
    tuples_at_once: int = 1_000,
    twice: bool = False,
) -> Mapping[str, list[Change]]:
    outlet = Collect()
    with tempfile.TemporaryDirectory() as folder:
        homes = {
            name: Home(
                Path(folder),
                _stream(catalog, name),
                sorted({a.partition for a in given}),
                queries,
            )
            for name, given in inputs.items()
        }
        mirrored = catalog
        for home in homes.values():
            mirrored = mirrored.with_definition(home.mirror)
        reader = SharedEngine(Path(folder) / "reader", outlet=outlet, durable=False)
        for home in homes.values():
            reader.add_stream(home.mirror)
        streams = {**dict.fromkeys(catalog.definitions), **mirrored.definitions}
        readable = Catalog({k: d for k, d in streams.items() if not isinstance(d, QueryDef)})
        remade = [compile_script(_named(q), readable).queries[0] for q in queries]
        reader.add_queries(remade)
        _begin_as(reader, options)
        feeds = {name: Feed(reader, home.mirror) for name, home in homes.items()}
        waiting = {name: iter(given) for name, given in inputs.items()}
        while waiting:
            for name, arrivals in list(waiting.items()):
                chunk = list(islice(arrivals, tuples_at_once))
                if not chunk:
                    del waiting[name]
                homes[name].take(chunk)
                homes[name].publish(feeds[name], twice)
            reader.run_to_end()
        reader.run_to_end()
        for engine in (reader, *(h.engine for h in homes.values())):
            engine.close()
    return {q.name: outlet.results.get(q.name, []) for q in queries}


def _stream(catalog: Catalog, name: str) -> StreamDef:
    found = catalog.find(name)
    assert isinstance(found, StreamDef)
    return found


def _named(query: QueryDef) -> str:
    text = query.text.strip()
    is_named = text.upper().startswith("CREATE")
    return text if is_named else f'CREATE QUERY "{query.name}" AS {text}'


@pytest.mark.parametrize("case", in_turn(CASES, 0, of=2), ids=lambda case: case.name)
def test_tuple_by_tuple_and_every_batch_again_and_again(case: Case) -> None:
    check(partial(networked, tuples_at_once=1, twice=True), case)


@settings(
    max_examples=examples(12),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
)
@given(workloads(queries=2), st.sampled_from([1, 2, 3, 1_000]), st.booleans())
def test_drawn_workloads(workload: Workload, tuples_at_once: int, twice: bool) -> None:
    script = workload.script()
    engine = partial(networked, tuples_at_once=tuples_at_once, twice=twice)
    check_against_reference(engine, script.catalog, script.queries, workload.inputs)
