"""The sender's side: what a query remembers, as a manifest and as bytes.

While the query goes on, a manifest lists what there is now: segments never change, so that most of
what is copied early is still right when the query is frozen. Then the manifest is final, and only
what has come since has to be sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import pyarrow as pa

from thalweg.engine.shared.compile.encoding import CODEC
from thalweg.engine.shared.compile.planning import Run, floor_of, make_plan
from thalweg.engine.shared.kernels.join.shapes import kept_in
from thalweg.engine.shared.moving.manifest import (
    STATE,
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
from thalweg.engine.shared.state.names import ENGINE_FED, Table, state_owner, state_part, stem_table
from thalweg.engine.shared.state.segments import Segment
from thalweg.plan.windows import BEGINNING

if TYPE_CHECKING:
    from thalweg.engine.shared.engine import SharedEngine


class Export:
    """Of one query, which stays the same for as long as this object is used."""

    def __init__(
        self,
        engine: SharedEngine,
        query: str,
        values: str = "",
        between_ticks: Callable[[], AbstractContextManager[None]] | None = None,
    ) -> None:
        self._engine, self.query, self._values = engine, query, values
        self._between_ticks = between_ticks or engine.exclusive
        self._checksums: dict[tuple[str, int], bytes] = {}

    def manifest(self, *, only_new: bool = False) -> StateManifest:
        """As of the last tick; `only_new`: of the tuples that have been read, those from the
        frontier on, and nothing of what is before. Raises CannotMove."""
        engine = self._engine
        with self._between_ticks():
            run = movable(engine, self.query)
            reached = engine.store.frontier(run.flow)
            frontier = BEGINNING if reached is None else reached
            listed = list(self._listed(run, frontier))
            if only_new:
                listed = [p for p in listed if p[0] == STEM and p[3].high >= frontier]
            streams = tuple(self._stream(s, run) for s in run.streams)
            operators = operators_of(run.output)
            order = list(operators)
            starts = engine.store.runs.class_starts(run.flow)
            classes = {order.index(c): tuple(start) for c, start in starts.items() if c in order}
        places = {name: i for i, name in enumerate(run.streams)}
        # Reading takes long, and needs no lock: a file that goes meanwhile has been merged.
        pieces = (self._piece(kind, of, part, s) for kind, of, part, s in listed)
        return StateManifest(
            versions(self._values),
            kinds_of(operators.values()),
            frontier,
            reached is not None,
            run.started,
            {places[s]: h for s, h in run.horizons},
            streams,
            classes,
            tuple(p for p in pieces if p is not None),
        )

    def read(self, key: tuple[str, int], size: int) -> pa.Buffer:
        """A piece's bytes, mapped. Raises CannotMove if it is gone: a later manifest lists what has
        taken its place."""
        bundle, offset = key
        try:
            with pa.memory_map(str(self._engine.manifest.folder.get(bundle))) as mapped:
                return mapped.read_buffer().slice(offset, size)
        except FileNotFoundError:
            raise CannotMove(f"{bundle} is gone: it was merged meanwhile") from None

    def _piece(self, kind: str, of: int, part: str, segment: Segment) -> Piece | None:
        known = self._checksums.get(segment.key)
        if known is None:
            try:
                known = checksum_of(self.read(segment.key, segment.size))
            except CannotMove:
                return None  # of a query that is not frozen
            self._checksums[segment.key] = known
        s = segment
        spans = s.rows, s.low, s.high, s.first, s.last
        return Piece(kind, of, part, *spans, s.bundle, s.offset, s.size, known)

    def _listed(self, run: Run, frontier: int) -> Iterator[tuple[str, int, str, Segment]]:
        engine = self._engine
        order = {name: i for i, name in enumerate(operators_of(run.output))}
        stems = {
            table: (place, str(number), self._floor(run, stream, frontier))
            for place, stream in enumerate(run.streams)
            for number, table in enumerate(self._tables(run, stream))
        }
        for segment in engine.manifest:
            if (owner := state_owner(segment.table)) is not None:
                flow, operator = owner
                part = state_part(segment.table)
                is_mine = flow == run.flow and operator in order and segment.high >= frontier
                # What a join keeps beside windows is made of them: who goes on will see if it pays.
                if is_mine and kept_in(segment.table) is None:
                    yield STATE, order[operator], part, segment
            elif segment.table in stems:
                place, number, floor = stems[segment.table]
                if segment.high >= floor:
                    yield STEM, place, number, segment

    def _keys(self, run: Run, stream: str) -> tuple[tuple[object, ...], ...]:
        """Of those indexes that the query probes; where one is missing here, of the first: it has
        all tuples, too."""
        present = self._engine.store.inputs.stems().get(stream, ())
        alone = make_plan([run], self._engine.streams, {}).stems[stream]
        return alone if all(k in present for k in alone) else present[:1]

    def _tables(self, run: Run, stream: str) -> list[Table]:
        return [stem_table(stream, keys) for keys in self._keys(run, stream)]  # type: ignore[arg-type]

    def _floor(self, run: Run, stream: str, frontier: int) -> int:
        if self._engine.streams[stream].is_relation:
            return BEGINNING
        alone = make_plan([run], self._engine.streams, {})
        return floor_of(stream, alone.flows, {run.flow: frontier})

    def _stream(self, name: str, run: Run) -> StreamState:
        engine, inputs = self._engine, self._engine.store.inputs
        partitions = [p for (s, _), p in inputs.partitions().items() if s == name]
        is_relation = engine.streams[name].is_relation
        return StreamState(
            name,
            max(engine.watermark(name), inputs.floor(name)),
            inputs.floor(name),
            inputs.complete_from(name, ()),
            inputs.kept_columns(name),
            tuple(CODEC.encode(k) for k in self._keys(run, name)),
            sum(p.position for p in partitions),
            bool(partitions),
            tuple(inputs.relation(name)) if is_relation else None,
        )


def movable(engine: SharedEngine, query: str) -> Run:
    """A query that has its state for itself. Raises CannotMove with what to do."""
    run = engine.roster.queries.get(query)
    if run is None:
        raise CannotMove(f"{query} does not run here")
    if any((engine.streams[s].source or "").startswith(ENGINE_FED) for s in run.streams):
        raise CannotMove(
            f"{query} is computed by an engine that does not hand over what it remembers: it can "
            "only be computed anew elsewhere, from its inputs"
        )
    if query in engine.roster.group_of:
        raise CannotMove(
            f"{query} is answered together with others, and its state is theirs: it can only be "
            "computed anew elsewhere, from its inputs"
        )
    if run.lasting_plan:
        raise CannotMove(f"{query} keeps the plan of an earlier version, which no other node makes")
    if run.replaces is not None or engine.store.versions.lineage(query) is not None:
        raise CannotMove(f"{query} has replaced another query, whose rows are here")
    return run
