"""A query enters the engine: its normal form, where it begins, and what its inputs still hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from thalweg.engine.shared.compile.columns import needed_columns
from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.compile.query import compile_query
from thalweg.engine.shared.frames import FOREVER
from thalweg.engine.shared.groups.cost_model import Sharing
from thalweg.engine.shared.tick.task import BEGINNING
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.nodes import check_output, resolution_us
from thalweg.plan.shapes import TemplateId, shape_of
from thalweg.sharing.alike import Alike
from thalweg.sharing.core import NormalQuery

if TYPE_CHECKING:
    from thalweg.engine.shared.engine import SharedEngine


Begun = tuple[int, int | None, dict[str, int]]  # epoch, from when on it counts, horizons


@dataclass(frozen=True, slots=True)
class _Common:
    """What queries of one template_id have in common."""

    columns: tuple[str, ...]
    reads: tuple[StreamDef, ...]
    streams: tuple[str, ...]  # in order of name
    forms: Alike


class Registering:
    """Queries that come together: what is the same for several is found out once."""

    def __init__(self, engine: SharedEngine, queries: Sequence[QueryDef]) -> None:
        self._engine = engine
        self._watermark = cache(engine.watermark)
        self._complete_from = cache(engine.store.complete_from)
        names = [q.name for q in queries]
        self._known = engine.store.queries(names)
        self._homes = engine.store.homes(names)
        self._epoch = engine.store.tick()[0] + 1
        self._common: dict[TemplateId, _Common] = {}
        self._begun: dict[tuple[TemplateId, bool], Begun] = {}

    def registered(self, query: QueryDef) -> Run:
        """A query as the engine runs it: as the book knows it, or new."""
        engine, plan, common = self._engine, query.plan, self._common_of(query)
        for stream in common.reads:
            engine.streams.setdefault(stream.name, stream)
        found = None if engine.sharing is Sharing.NEVER else common.forms.normal(plan)
        epoch, started, horizons = self._known.get(query.name) or self._begun_of(query, common)
        return Run(
            query.name,
            common.columns,
            common.streams,
            epoch,
            started,
            engine.pool.one(_pairs(horizons)),
            found if isinstance(found, NormalQuery) else None,
            plan if query.name not in self._homes else None,
        )

    def fresh(self, queries: Iterable[Run]) -> Iterator[Run]:
        """Those that the book does not know."""
        return (q for q in queries if q.name not in self._known)

    def homes(self, queries: Iterable[Run]) -> Iterator[tuple[str, str]]:
        """Where those live that lived in a group before a restart."""
        return ((q.name, self._homes[q.name]) for q in queries if q.name in self._homes)

    def _common_of(self, query: QueryDef) -> _Common:
        if query.template_id is None:
            return self._find_common(query)
        if query.template_id not in self._common:
            self._common[query.template_id] = self._find_common(query)
        return self._common[query.template_id]

    def _find_common(self, query: QueryDef) -> _Common:
        check_output(query.plan)
        resolution_us(query.plan)
        shape, pool = shape_of(query), self._engine.pool
        return _Common(
            pool.one(shape.columns),
            shape.streams,
            pool.one(tuple(sorted(s.name for s in shape.streams))),
            Alike(pool),
        )

    def _begun_of(self, query: QueryDef, common: _Common) -> Begun:
        if query.template_id is None:
            return self._begin(query, common)
        key = query.template_id, query.from_now
        if key not in self._begun:
            self._begun[key] = self._begin(query, common)
        return self._begun[key]

    def _begin(self, query: QueryDef, common: _Common) -> Begun:
        now = min(map(self._watermark, common.streams))
        started = now if BEGINNING < now < FOREVER else None
        horizons = self._horizons(query, common)
        if query.from_now and started is not None:
            # Tuples of this very instant may have come, and gone unread, before.
            horizons = {s: max(started, h) for s, h in horizons.items()}
        return self._epoch, started, horizons

    def _horizons(self, query: QueryDef, common: _Common) -> dict[str, int]:
        """Where a new query's inputs begin: with what is stored in all columns that it needs."""
        needed: Mapping[str, Iterable[int]] = {s.name: range(len(s.fields)) for s in common.reads}
        if not all(map(self._engine.store.is_whole, common.reads)):
            needed = needed_columns([compile_query(query.plan)])
        return {s: self._complete_from(s, columns) for s, columns in needed.items()}


def _pairs(horizons: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple((s, h) for s, h in sorted(horizons.items()) if h > BEGINNING)
