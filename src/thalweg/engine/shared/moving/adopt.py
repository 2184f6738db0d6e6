"""The receiver's side: a query goes on here where it was frozen elsewhere.

Pieces come one by one into a folder of their own, and count once their checksum is right; so a
receiver that was interrupted fetches only what it lacks. Then, between two ticks and in one
transaction, they become segments of this engine, and the query stands at its frontier.

States are matched by what they hold. Where this engine plans otherwise than the sender, operators'
states are discarded, and the windows' tuples are computed again, from the bottom to the top: the
query begins `anew` with the first of them, and has what it had at the frontier once it is there.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import polars as pl

from thalweg.engine.shared.compile.encoding import CODEC
from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.compile.query import compile_query
from thalweg.engine.shared.frames import TS
from thalweg.engine.shared.moving.manifest import (
    STEM,
    CannotMove,
    Piece,
    StateManifest,
    StreamState,
    checksum_of,
    kinds_of,
    operators_of,
    versions,
)
from thalweg.engine.shared.state.inputs import Partition, Relation
from thalweg.engine.shared.state.names import Table, state_table, stem_table
from thalweg.engine.shared.state.runs import Begun, ClassStart
from thalweg.engine.shared.state.segments import BundleWriter, Section, Segment, read_section
from thalweg.plan.cutting import reach
from thalweg.plan.nodes import Node, Tolerant, walk
from thalweg.plan.windows import BEGINNING, FOREVER

if TYPE_CHECKING:
    from thalweg.engine.shared.engine import SharedEngine


class Arrived:
    """Pieces that have come, in a folder: what is there is whole."""

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._durable = folder, durable

    def path(self, piece: Piece) -> Path:
        return self.folder / f"{piece.bundle}.{piece.offset}"

    def lacks(self, manifest: StateManifest) -> list[Piece]:
        """In order of the manifest; pieces without bytes need not come."""
        return [p for p in manifest.pieces if not self._has(p)]

    def _has(self, piece: Piece) -> bool:
        path = self.path(piece)
        return path.exists() and path.stat().st_size == piece.size

    def put(self, piece: Piece, *content: bytes) -> None:
        """In parts, if it is large. Raises CannotMove if these are not the piece's bytes."""
        if sum(map(len, content)) != piece.size or checksum_of(*content) != piece.checksum:
            raise CannotMove(f"a piece of {piece.size} bytes came damaged: it has to come again")
        partial = self.folder / f"{uuid.uuid4().hex}.partial"
        with partial.open("wb") as file:
            for part in content:
                file.write(part)
                file.flush()
                if self._durable:  # part by part: others' commits on this disk wait for each
                    os.fsync(file.fileno())
        partial.rename(self.path(piece))

    def keep_only(self, manifest: StateManifest) -> None:
        """What an older manifest has listed goes."""
        listed = {self.path(p).name for p in manifest.pieces}
        for path in self.folder.iterdir():
            if path.name not in listed:
                path.unlink(missing_ok=True)

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def check_versions(manifest: StateManifest, values: str = "") -> None:
    """Raises CannotMove where the sender is of another kind."""
    own = versions(values)
    for what in sorted({*own, *manifest.versions}):
        here, there = own.get(what, "none"), manifest.versions.get(what, "none")
        if here != there:
            raise CannotMove(
                f"the sender's state has {what} {there}, and this node {here}: only nodes of one "
                "version take over state from each other"
            )


def follows_from_windows(plan: Node) -> int | None:
    """How far back tuples lie from which all follows that a plan remembers; None: no such tuples
    are there."""
    if any(isinstance(node, Tolerant) for node in walk(plan)):
        return None  # which rows pass depends on those that passed before
    return reach(plan)


def begins_anew(plan: Node, manifest: StateManifest) -> int | None:
    """None if all states match; else the first instant whose tuples have to be computed again.
    Raises CannotMove if they are not all there."""
    if kinds_of(operators_of(compile_query(plan)).values()) == manifest.operators:
        return None
    reaches = follows_from_windows(plan)
    if reaches is None or not manifest.has_spoken:
        raise CannotMove(
            "it is planned otherwise here, and what it remembers can't be computed again from its "
            "windows: only equal plans share such state"
        )
    return max(BEGINNING + 1, manifest.frontier - reaches)


def begin_adopted(
    engine: SharedEngine,
    query: str,
    manifest: StateManifest,
    streams: Sequence[str],
    anew: int | None = None,
) -> None:
    """Let a query that is about to be registered begin where it was, or `anew` with tuples from
    that instant on: in the transaction in which it is registered. `streams` are this engine's, in
    the manifest's order."""
    number = engine.store.take_numbers("runs", 1)
    epoch = engine.store.tick()[0] + 1
    horizons, started = dict.fromkeys(streams, BEGINNING), manifest.started
    horizons |= {streams[place]: h for place, h in manifest.horizons.items()}
    if anew is not None:
        started = anew - 1
        for name, state in zip(streams, manifest.streams, strict=True):
            if state.relation is None:
                horizons[name] = max(horizons[name], anew)
    engine.store.runs.begin([(query, Begun(number, epoch, started, horizons))])


def adopt(
    engine: SharedEngine,
    query: str,
    manifest: StateManifest,
    arrived: Arrived,
    streams: Sequence[str],
    values: str = "",
    anew: int | None = None,
) -> None:
    """Between ticks, in the transaction in which the query was registered (`begin_adopted`), and
    before its streams are fed. Raises CannotMove, and then nothing must stand."""
    check_versions(manifest, values)
    if lacking := arrived.lacks(manifest):
        raise CannotMove(f"{len(lacking)} of {len(manifest.pieces)} pieces have not come")
    run = engine.roster.queries[query]
    operators = operators_of(run.output)
    if anew is None and kinds_of(operators.values()) != manifest.operators:
        raise CannotMove(f"{query} is planned otherwise here: only equal plans share state")
    if anew is not None:
        windows = tuple(p for p in manifest.pieces if p.kind == STEM)
        manifest = msgspec.structs.replace(manifest, pieces=windows, classes={}, has_spoken=False)
    segments = list(_segments(engine, run, list(operators), manifest, arrived, streams))
    with engine.store.transaction():
        engine.manifest.adopt(segments)
        if manifest.has_spoken:
            reached = {**engine.store.frontiers(), run.flow: manifest.frontier}
            engine.store.write_frontiers(reached)
        for place, (horizon, since) in manifest.classes.items():
            start = ClassStart(horizon, since)
            engine.store.runs.join_class(run.flow, list(operators)[place], start)
        for name, state in zip(streams, manifest.streams, strict=True):
            _begin_stream(engine, name, state, anew)
        stems = {s: tuple(CODEC.decode(k) for k in of.keys) for s, of in _by(streams, manifest)}
        engine.store.inputs.write_stems({**engine.store.inputs.stems(), **stems})


def _by(streams: Sequence[str], manifest: StateManifest) -> Iterator[tuple[str, StreamState]]:
    return ((s, of) for s, of in zip(streams, manifest.streams, strict=True) if of.keys)


def _begin_stream(engine: SharedEngine, name: str, state: StreamState, anew: int | None) -> None:
    """As if the stream had been read here so far, or from an instant on."""
    inputs = engine.store.inputs
    if state.has_begun:
        inputs.write_partitions({(name, 0): Partition(state.upto, state.position)})
        inputs.write_cuts([(name, 0, state.upto)])
    inputs.raise_floors({name: state.floor})
    complete = state.complete_from
    if anew is not None and state.relation is None:
        complete = max(complete, anew)
    inputs.complete_only_from({name: complete})
    inputs.know_columns(name, state.kept)
    if state.relation is not None:
        inputs.write_relation(name, Relation(*state.relation))


def _segments(
    engine: SharedEngine,
    run: Run,
    operators: Sequence[str],
    manifest: StateManifest,
    arrived: Arrived,
    streams: Sequence[str],
) -> Iterator[Segment]:
    """The pieces as files of this engine."""
    keys: Mapping[int, list[Table]] = {
        place: [stem_table(streams[place], CODEC.decode(k)) for k in of.keys]
        for place, of in enumerate(manifest.streams)
    }
    for piece in manifest.pieces:
        if piece.kind == STEM:
            upto = manifest.streams[piece.of].upto
            yield from _stem(engine, keys[piece.of][int(piece.part)], piece, upto, arrived)
        else:
            table = state_table(run.flow, operators[piece.of], piece.part)
            yield _taken(engine, table, piece, arrived)


def _taken(engine: SharedEngine, table: Table, piece: Piece, arrived: Arrived) -> Segment:
    """As it is."""
    folder, name = engine.manifest.folder, f"moved-{uuid.uuid4().hex}.arrow"
    target = folder.new(name)
    try:
        os.link(arrived.path(piece), target)
    except OSError:  # another file system
        shutil.copyfile(arrived.path(piece), target)
    folder.keep(name)
    spans = piece.rows, piece.low, piece.high, piece.first, piece.last
    return Segment(table, name, 0, piece.size, *spans)


def _stem(
    engine: SharedEngine, table: Table, piece: Piece, upto: int, arrived: Arrived
) -> Iterator[Segment]:
    """Without the tuples that this engine reads for itself."""
    if piece.high < upto or upto >= FOREVER:
        yield _taken(engine, table, piece, arrived)
        return
    taken = _taken(engine, table, piece, arrived)
    folder = engine.manifest.folder
    rows = read_section(folder, Section(taken.bundle, 0, taken.size)).filter(pl.col(TS) < upto)
    if rows.height:
        writer = BundleWriter(folder, f"moved-{uuid.uuid4().hex}.arrow")
        low, high = int(rows[TS].min()), int(rows[TS].max())  # type: ignore[arg-type]
        writer.add(table, rows, low, high)
        yield from writer.close()
