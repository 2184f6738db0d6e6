"""A query's state moves from engine to engine, and its changelog is the reference's.

Streams have a home, which publishes them. A query runs over mirrors of them at one engine; at drawn
moments it is frozen, exported, adopted by another engine with mirrors of other names, and goes on
there. Either engine may be started again at any step, as after a `kill -9`: what is not in its book
is forgotten. With `THALWEG_MOVES=n` (`make soak`) every case is moved in n ways; else every eighth
in one.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.case_files import Case, all_cases
from tests.conformance.generators import Workload, workloads
from tests.conformance.runner import Inputs, check, check_against_reference
from tests.engine.shared.adapter import Collect, divided, push
from tests.engine.shared.shapes_in_turn import in_turn
from tests.runtime.data.test_cut_plans import _arriving

from thalweg.cql import compile_script
from thalweg.engine.arrivals import Arrival
from thalweg.engine.changelog import Change
from thalweg.engine.reference import Options
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.kernels.join.shapes import KEPT
from thalweg.engine.shared.moving.adopt import (
    Arrived,
    adopt,
    begin_adopted,
    begins_anew,
    follows_from_windows,
)
from thalweg.engine.shared.moving.export import Export
from thalweg.engine.shared.moving.manifest import (
    CannotMove,
    StateManifest,
    decode_manifest,
    encode_manifest,
)
from thalweg.engine.site.publications import pieces, publication_text
from thalweg.engine.sources.feed import Feed
from thalweg.plan.catalog import Catalog, QueryDef, StreamDef
from thalweg.plan.nodes import base_streams
from thalweg.runtime.data.messages import Range
from thalweg.runtime.data.mirror import MirrorSource
from thalweg.runtime.data.routes import Place, Route, encode_place
from thalweg.runtime.data.statements import mirror_text
from thalweg.runtime.network.fragments.fragments import with_streams

WAYS = int(os.environ.get("THALWEG_MOVES", "0"))
CASES = all_cases() if WAYS else all_cases()[2::8]
ROWS_AT_ONCE = {"rows_for_more_tasks": 1 << 40}


class Killed(Exception):
    """As if the process had ended here."""


class Home:
    """Where streams are fed and judged."""

    def __init__(self, folder: Path, catalog: Catalog, inputs: Inputs) -> None:
        self.streams = {s.name: s for s in catalog.streams()}
        self.engine = SharedEngine(folder, durable=False, **ROWS_AT_ONCE)  # type: ignore[arg-type]
        texts = (publication_text(s, f"pub/{n}", None) for n, s in self.streams.items())
        known = Catalog({n.lower(): s for n, s in self.streams.items()})
        compiled = compile_script("; ".join(texts), known)
        self.publications = {q.name.removeprefix("pub/"): q for q in compiled.queries}
        for stream in self.streams.values():
            self.engine.add_stream(stream)
        self.engine.add_queries(compiled.queries)
        for name, arrivals in inputs.items():
            self.engine.landing.declare(self.streams[name], sorted({a.partition for a in arrivals}))


class Node:
    """An engine that reads streams of the home under names of its own."""

    def __init__(self, folder: Path, home: Home, **how: Any) -> None:
        self.folder, self.home, self.how = folder, home, how
        self.outlet = Collect()
        self.mirrors: dict[str, tuple[str, StreamDef]] = {}  # by name: the stream of the home
        self.queries: dict[str, QueryDef] = {}
        self.open()

    def open(self) -> None:
        self.engine = SharedEngine(self.folder, outlet=self.outlet, durable=False, **self.how)
        for _, stream in self.mirrors.values():
            self.engine.add_stream(stream)
        self.engine.add_queries(self.queries.values())

    def again(self) -> None:
        self.engine.close()
        self.open()

    def mirror(self, name: str, of: str) -> StreamDef:
        own = replace(self.home.streams[of], name=name)
        (stream,) = compile_script(mirror_text(own, "home", of)).catalog.streams()
        self.mirrors[name] = of, stream
        self.engine.add_stream(stream)
        return stream

    def read(self) -> None:
        """All that the home has published."""
        for of, stream in self.mirrors.values():
            source = MirrorSource(stream, "home", _routes(of), _nobody, lambda: (0, None))
            feed = Feed(self.engine, stream)
            since = source.place(feed).instant
            for piece in pieces(self.home.engine, self.home.publications[of], since):
                source.take(feed, Range(piece.low, piece.upto), piece.rows)

    def run(self, *queries: QueryDef, options: Options | None = None) -> None:
        """From the beginning, or where a case says."""
        self.engine.add_queries(queries)
        self.queries |= {q.name: q for q in queries}
        given = options or Options()
        horizons = {n: given.get("horizons", {}).get(of) for n, (of, _) in self.mirrors.items()}
        for query in queries:
            begun = self.engine.store.runs.begun([query.name])[query.name]
            own = {s: h for s in begun.horizons if (h := horizons[s]) is not None}
            begun = msgspec.structs.replace(begun, started=given.get("start"), horizons=own)
            self.engine.store.runs.begin([(query.name, begun)])
            run = self.engine.roster.queries[query.name]
            pairs = tuple(sorted(own.items()))
            self.engine.roster.add([replace(run, started=given.get("start"), horizons=pairs)])

    def drop(self, query: str) -> None:
        self.engine.drop_query(query)
        read = {s.name for s in base_streams(self.queries.pop(query).plan)}
        for name in read - {s.name for q in self.queries.values() for s in base_streams(q.plan)}:
            self.engine.drop_stream(name)
            del self.mirrors[name]


def _routes(of: str) -> Callable[[], tuple[Route, ...]]:
    return lambda: (Route(of),)


def _nobody(_: str) -> Any:
    raise AssertionError("nobody is asked")


def place(node: Node, query: QueryDef, prefix: str, options: Options) -> None:
    """Over mirrors that queries share."""
    names = {s.name for s in base_streams(query.plan)}
    for of in sorted(names):
        if f"{prefix}{of}" not in node.mirrors:
            node.mirror(f"{prefix}{of}", of)
    streams = {of: node.mirrors[f"{prefix}{of}"][1] for of in names}
    node.run(QueryDef(query.name, with_streams(query.plan, streams)), options=options)


def move(
    sender: Node,
    receiver: Node,
    query: str,
    prefix: str,
    chance: random.Random,
    *,
    unmatched: bool = False,
) -> int | None:
    """From which instant on it has moved; None if it has not. `unmatched`: the receiver has another
    shape, so that it takes windows only, if it can."""
    export = Export(sender.engine, query)
    arrived = Arrived(receiver.folder / "moving" / query, durable=False)
    try:
        sender.engine.pin(query)
        early = export.manifest() if chance.random() < 0.5 else None
        if early is not None:  # what is there is copied while the sender goes on
            copy(export, early, arrived, chance)
            sender.read()
            sender.engine.tick()
            if chance.random() < 0.3:
                sender.again()
                export = Export(sender.engine, query)
        instant = sender.engine.freeze(query)
    except CannotMove as error:
        if "finished" not in str(error) and "together" not in str(error):
            raise
        sender.engine.thaw(query)
        arrived.clear()
        return None
    if chance.random() < 0.3:
        sender.again()
        export = Export(sender.engine, query)
    said = len(sender.outlet.results.get(query, []))
    sender.read()
    sender.engine.run_to_end()  # it stands still
    assert len(sender.outlet.results.get(query, [])) == said
    manifest = decode_manifest(encode_manifest(export.manifest()))
    assert manifest.frontier == instant
    assert not any(p.part.startswith(KEPT) for p in manifest.pieces)
    is_able = manifest.has_spoken and follows_from_windows(sender.queries[query].plan) is not None
    if unmatched and is_able:
        manifest = msgspec.structs.replace(manifest, operators=("another shape",))
    if chance.random() < 0.2:  # the receiver does not come back: it goes on here
        sender.engine.thaw(query)
        arrived.clear()
        return None
    copy(export, manifest, arrived, chance, stop_after=chance.choice((0, 1, 10_000)))
    if chance.random() < 0.5:
        receiver.again()
        arrived = Arrived(receiver.folder / "moving" / query, durable=False)
    copy(export, manifest, arrived, chance)
    if chance.random() < 0.3:
        with pytest.raises(Killed):
            take(sender, receiver, query, manifest, arrived, prefix, dies=True)
        receiver.again()
    take(sender, receiver, query, manifest, arrived, prefix)
    arrived.clear()
    sender.drop(query)
    if chance.random() < 0.3:
        receiver.again()
    return instant


def copy(
    export: Export,
    manifest: StateManifest,
    arrived: Arrived,
    chance: random.Random,
    stop_after: int = 10_000,
) -> None:
    for piece in arrived.lacks(manifest)[:stop_after]:
        content = export.read(piece.key, piece.size).to_pybytes()
        if chance.random() < 0.1:
            with pytest.raises(CannotMove, match="damaged"):
                arrived.put(piece, content[:-1] + bytes([content[-1] ^ 1]))
        arrived.put(piece, content)


def take(
    sender: Node,
    receiver: Node,
    query: str,
    manifest: StateManifest,
    arrived: Arrived,
    prefix: str,
    *,
    dies: bool = False,
) -> None:
    """Where nothing of what operators remember is said to match, it is computed again."""
    mirrors, queries = dict(receiver.mirrors), dict(receiver.queries)
    try:
        with receiver.engine.exclusive(), receiver.engine.store.transaction():
            made = {}
            for state in manifest.streams:
                of = sender.mirrors[state.name][0]
                made[state.name] = receiver.mirror(f"{prefix}{of}", of)
            own = [made[s.name].name for s in manifest.streams]
            plan = with_streams(sender.queries[query].plan, made)
            anew = begins_anew(plan, manifest)
            begin_adopted(receiver.engine, query, manifest, own, anew)
            moved = QueryDef(query, plan)
            receiver.engine.add_queries([moved])
            receiver.queries[query] = moved
            adopt(receiver.engine, query, manifest, arrived, own, anew=anew)
            for name, state in zip(own, manifest.streams, strict=True):
                if state.has_begun:
                    of, _ = receiver.mirrors[name]
                    at = encode_place(Place(of, state.upto))
                    receiver.engine.store.inputs.write_resume_point(name, 0, at)
            if dies:
                raise Killed
    except Killed:
        receiver.mirrors, receiver.queries = mirrors, queries
        raise


def moved_about(
    catalog: Catalog,
    queries: Sequence[QueryDef],
    inputs: Inputs,
    options: Options,
    *,
    seed: object,
    tuples_at_once: int = 1,
    counts: dict[str, int] | None = None,
    unmatched: bool = False,
) -> Mapping[str, list[Change]]:
    chance = random.Random(repr(seed))
    way = chance.choice(("one task", "one task", "rows"))
    moves = 0
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home", catalog, inputs)
        # What joins keep beside windows stays behind, whatever it is.
        shapes = in_turn(chance.randrange(100))
        how = {**divided(way), "shapes": shapes}
        nodes = [Node(Path(folder) / str(i), home, **how) for i in range(2)]
        at = {q.name: 0 for q in queries}
        since: dict[str, int] = {}  # what is said before was said elsewhere
        counted: dict[str, list[Change]] = {q.name: [] for q in queries}
        for query in queries:
            place(nodes[0], query, "first/", options)
        for name, chunk in _arriving(inputs, tuples_at_once):
            if not chunk:
                home.engine.finish(name)
            push(home.engine, home.streams[name], chunk)
            if chance.random() < 0.7:
                home.engine.run_to_end()
                for node in nodes:
                    node.read()
                    if chance.random() < 0.8:
                        node.engine.run_to_end()
            for query in queries:
                if chance.random() < 0.15:
                    here = at[query.name]
                    moves += 1
                    taken = move(
                        nodes[here],
                        nodes[1 - here],
                        query.name,
                        f"{moves}/",
                        chance,
                        unmatched=unmatched,
                    )
                    if taken is not None:
                        counted[query.name] += said_since(nodes[here], query.name, since)
                        at[query.name] = 1 - here
                        since[query.name] = taken
                        if counts is not None:
                            counts["moved"] = counts.get("moved", 0) + 1
        home.engine.run_to_end()
        for node in nodes:
            node.read()
            node.engine.run_to_end()
            node.engine.close()
        home.engine.close()
    for query in queries:
        counted[query.name] += said_since(nodes[at[query.name]], query.name, since)
    return {name: sorted(changes, key=lambda c: c.ts) for name, changes in counted.items()}


def said_since(node: Node, query: str, since: Mapping[str, int]) -> list[Change]:
    """What readers take of a node that has a query just now: from the last move on."""
    said = node.outlet.results.pop(query, [])
    return [c for c in said if query not in since or c.ts >= since[query]]


@pytest.mark.parametrize("seed", range(3 * max(WAYS, 1)))
def test_a_join_of_three_that_keeps_intermediates_moves(seed: int) -> None:
    text = "".join(
        f"CREATE STREAM {s} (k INTEGER, v INTEGER) TIMESTAMP BY at BIGINT;" for s in "ABC"
    )
    script = compile_script(
        f"{text} CREATE QUERY q AS SELECT A.v, B.k, C.v AS w "
        "FROM A [Range 5], B [Range 6], C [Range 9] WHERE A.k = B.k AND B.v = C.v;"
    )
    inputs = {s: [Arrival(0, t, t, (1 + t % 2, t % 3), "+") for t in range(14)] for s in "ABC"}
    counts: dict[str, int] = {}
    engine = partial(moved_about, seed=("three", seed), tuples_at_once=1, counts=counts)
    check_against_reference(engine, script.catalog, script.queries, inputs)
    assert counts["moved"] > 0


@pytest.mark.parametrize("way", range(max(WAYS, 1)))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases(case: Case, way: int) -> None:
    check(partial(moved_about, seed=(case.name, way), tuples_at_once=2), case)


@pytest.mark.parametrize("case", CASES[::6], ids=lambda case: case.name)
def test_what_does_not_match_is_computed_again(case: Case) -> None:
    check(partial(moved_about, seed=case.name, tuples_at_once=2, unmatched=True), case)


@settings(
    max_examples=100 * WAYS or 3,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
)
@given(workloads(queries=2), st.sampled_from([1, 3, 10]), st.integers(0, 1 << 32))
def test_drawn_workloads(workload: Workload, tuples_at_once: int, seed: int) -> None:
    script = workload.script()
    engine = partial(moved_about, seed=seed, tuples_at_once=tuples_at_once)
    check_against_reference(engine, script.catalog, script.queries, workload.inputs)
