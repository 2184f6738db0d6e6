"""A query enters the engine: its normal form, where it begins, and what its inputs still hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import msgspec

from thalweg.engine.shared.compile.columns import needed_columns
from thalweg.engine.shared.compile.history import Gap, gaps_of, is_in_stems, looks_at_history
from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.compile.query import compile_query
from thalweg.engine.shared.groups.cost_model import Sharing
from thalweg.engine.shared.state.names import COMPUTED, GROUP
from thalweg.engine.shared.state.runs import Begun
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.state.versions import Ended
from thalweg.engine.shared.tick.cut import Cut, watermark
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.cutting import reach
from thalweg.plan.nodes import check_output, resolution_us
from thalweg.plan.shapes import TemplateId, shape_of
from thalweg.plan.windows import BEGINNING, FOREVER
from thalweg.sharing.alike import Alike
from thalweg.sharing.core import NormalQuery
from thalweg.sharing.interning import Pool


class NameTaken(ValueError):
    """A query's name that belongs to the engine."""


@dataclass(frozen=True, slots=True)
class Past:
    """Of a stream that has begun elsewhere: how far time has come there, and from where on its
    tuples will be handed over. Nothing is known of what it held before `first`, so that no query
    over it begins earlier. `again`: some of it is here, and all of it will come once more."""

    watermark: int
    complete_from: int = BEGINNING
    first: int = BEGINNING
    again: bool = False


@dataclass(frozen=True, slots=True)
class _Common:
    """What queries of one template have in common."""

    columns: tuple[str, ...]
    reads: tuple[StreamDef, ...]
    streams: tuple[str, ...]  # in order of name
    keeps_content: bool
    forms: Alike


class Registering:
    """Queries that come together: what is the same for several is found out once."""

    def __init__(
        self,
        store: Store,
        streams: dict[str, StreamDef],
        sharing: Sharing,
        pool: Pool,
        queries: Sequence[QueryDef],
        starts: Mapping[str, int],
        pasts: Mapping[str, Past],
    ) -> None:
        self._store, self._streams, self._sharing, self._queries = store, streams, sharing, queries
        self._pool = pool  # of what many queries have in common
        self._starts = starts  # of those that go on where another version ended
        self._pasts = pasts  # of streams of which nothing has come yet
        self._watermark = cache(self._find_watermark)
        self._complete_from = cache(store.inputs.complete_from)
        self._cuts = store.inputs.cuts()
        names = [q.name for q in queries]
        for name in names:
            if name.startswith(GROUP):
                raise NameTaken(
                    f"{name}: names that begin with {GROUP} are the engine's own: choose another"
                )
        self._known = store.runs.begun(names)
        self._groups = store.runs.groups_of(names)
        self._replaces = _pending(store, names)
        last, record = store.tick()
        self._pending = None if record is None else msgspec.msgpack.decode(record, type=Cut)
        self._epoch = last + 1
        self._lasting_before = store.runs.lasting_before(self._epoch)
        fresh = [n for n in names if n not in self._known]
        first = store.take_numbers("runs", len(fresh)) if fresh else 0
        self._numbers = {name: first + i for i, name in enumerate(fresh)}
        self._common: dict[TemplateId, _Common] = {}
        self._begun: dict[tuple[TemplateId, bool], Begun] = {}
        self._fresh: list[tuple[str, Begun]] = []
        self._found_gaps: dict[object, tuple[Gap, ...]] = {}

    def runs(self) -> list[Run]:
        """The queries as the engine runs them: as the book knows them, or new."""
        return [self._run(q) for q in self._queries]

    def fresh(self) -> list[tuple[str, Begun]]:
        """When those begin that the book does not know."""
        return self._fresh

    def groups(self) -> Iterator[tuple[str, str]]:
        """Who has answered those that were in a group before a restart."""
        return iter(self._groups.items())

    def _run(self, query: QueryDef) -> Run:
        plan, common = query.plan, self._common_of(query)
        for stream in common.reads:
            self._streams.setdefault(stream.name, stream)
        found = None if self._stays_alone(query) else common.forms.normal(plan)
        begun = self._known.get(query.name)
        if begun is None:
            begun = msgspec.structs.replace(
                self._begun_of(query, common), run=self._numbers[query.name]
            )
            if query.name in self._starts:
                begun = _beginning_at(begun, self._starts[query.name], query.from_now)
            self._fresh.append((query.name, begun))
        horizons = self._pool.one(_pairs(begun.horizons))
        return Run(
            query.name,
            common.columns,
            common.streams,
            begun.epoch,
            begun.started,
            horizons,
            found if isinstance(found, NormalQuery) else None,
            plan if query.name not in self._groups else None,
            number=begun.run,
            lasting_plan=begun.epoch < self._lasting_before,
            gaps=self._gaps(query, begun) if horizons else (),
            keeps_content=common.keeps_content,
            replaces=self._replaces.get(query.name),
        )

    def _stays_alone(self, query: QueryDef) -> bool:
        """What another node reads and nobody could rebuild has its state for itself, so that it can
        be moved there (`moving`)."""
        if self._sharing is Sharing.NEVER:
            return True
        is_part = query.name.startswith(COMPUTED) and query.name not in self._groups
        return is_part and reach(query.plan) is None

    def _gaps(self, query: QueryDef, begun: Begun) -> tuple[Gap, ...]:
        key = query.template_id, begun.started, _pairs(begun.horizons)
        if query.template_id is not None and key in self._found_gaps:
            return self._found_gaps[key]
        found = gaps_of(query.plan, begun.started, begun.horizons)
        for name, since in begun.horizons.items():
            # In data directories of versions that did not keep relations whole.
            is_lost = self._streams[name].is_relation and self._complete_from(name, ()) > BEGINNING
            if is_lost and since > BEGINNING:
                found = (*found, Gap(name, None, since, FOREVER))
        self._found_gaps[key] = found = tuple(
            replace(g, columns=self._unkept(query, g)) for g in found
        )
        return found

    def _unkept(self, query: QueryDef, gap: Gap) -> tuple[str, ...]:
        """The columns that are missing longer than the tuples themselves."""
        stream = self._streams[gap.stream]
        if not stream.wide or query.name in self._known or query.from_now:
            return ()
        needed = needed_columns([compile_query(query.plan)])[gap.stream]
        tuples = self._complete_from(gap.stream, ())
        late = (c for c in sorted(needed) if self._complete_from(gap.stream, (c,)) > tuples)
        return tuple(stream.fields[c].name for c in late)

    def _common_of(self, query: QueryDef) -> _Common:
        if query.template_id is None:
            return self._find_common(query)
        if query.template_id not in self._common:
            self._common[query.template_id] = self._find_common(query)
        return self._common[query.template_id]

    def _find_common(self, query: QueryDef) -> _Common:
        check_output(query.plan)
        resolution_us(query.plan)
        shape = shape_of(query)
        return _Common(
            self._pool.one(shape.columns),
            shape.streams,
            self._pool.one(tuple(sorted(s.name for s in shape.streams))),
            shape.kind is None and not is_in_stems(query.plan),
            Alike(self._pool),
        )

    def _begun_of(self, query: QueryDef, common: _Common) -> Begun:
        if query.template_id is None:
            return self._begin(query, common)
        key = query.template_id, query.from_now
        if key not in self._begun:
            self._begun[key] = self._begin(query, common)
        return self._begun[key]

    def _begin(self, query: QueryDef, common: _Common) -> Begun:
        # A table does not say how far time has come, unless there is nothing else to ask.
        clocks = [s for s in common.streams if not self._streams[s].is_table] or common.streams
        now = min(map(self._watermark, clocks))
        firsts = [self._pasts[s].first for s in common.streams if s in self._pasts]
        now = max([now, *firsts])
        started = now if BEGINNING < now < FOREVER else None
        horizons = self._horizons(query, common)
        if query.from_now and started is not None:
            # Tuples of this very instant may have come, and gone unread, before.
            horizons = {
                s: h if self._streams[s].is_relation else max(started, h)
                for s, h in horizons.items()
            }
        for name in common.streams:
            if self._streams[name].is_relation:
                horizons[name] = max(horizons[name], self._content_from(query, name, started))
        return Begun(0, self._epoch, started, horizons)

    def _find_watermark(self, stream: str) -> int:
        """As of the last tick."""
        if stream in self._pasts:
            return self._pasts[stream].watermark
        cuts = [cut for (s, _), cut in self._cuts.items() if s == stream]
        return watermark(self._streams[stream], cuts)

    def _horizons(self, query: QueryDef, common: _Common) -> dict[str, int]:
        """Where a new query's inputs begin: with what is stored in all columns that it needs."""
        needed: Mapping[str, Iterable[int]] = {s.name: range(len(s.fields)) for s in common.reads}
        if not all(map(self._store.inputs.is_whole, common.reads)):
            needed = needed_columns([compile_query(query.plan)])
        return {s: self._complete_from(s, columns) for s, columns in needed.items()}

    def _content_from(self, query: QueryDef, relation: str, started: int | None) -> int:
        """Where a relation begins, with its content, for a query that looks at more than that."""
        reduced = self._store.inputs.relation(relation).reduced
        if self._pending is not None:
            reduced = self._pending.reduced.get(relation, reduced)
        if reduced == BEGINNING:
            return BEGINNING
        is_in_sight = started is None or started < reduced - 1
        looks = is_in_sight or looks_at_history(query.plan, relation)
        return reduced - 1 if looks else BEGINNING


def _pending(store: Store, names: Iterable[str]) -> dict[str, Ended]:
    """The last versions of those whose successors have not spoken yet."""
    lineages = store.versions.lineages(names)
    return {q: store.versions.ended(q)[-1] for q, lineage in lineages.items() if lineage.pending}


def _beginning_at(begun: Begun, start: int, from_now: bool) -> Begun:
    horizons = begun.horizons
    if from_now:
        horizons = {s: max(start, h) for s, h in horizons.items()}
    return msgspec.structs.replace(begun, started=start, horizons=horizons)


def _pairs(horizons: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple((s, h) for s, h in sorted(horizons.items()) if h > BEGINNING)
