"""A query enters the engine: its normal form, where it begins, and what its inputs still hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from thalweg.engine.shared.columns import needed_columns
from thalweg.engine.shared.compile import compile_query
from thalweg.engine.shared.frames import FOREVER
from thalweg.engine.shared.planning import Registered
from thalweg.engine.shared.store import Store
from thalweg.engine.shared.task import BEGINNING
from thalweg.engine.shared.worth import Sharing
from thalweg.plan.catalog import QueryDef
from thalweg.plan.nodes import base_streams, check_output, resolution_us
from thalweg.sharing.core import NormalQuery
from thalweg.sharing.normal import normalise

if TYPE_CHECKING:
    from thalweg.engine.shared.engine import SharedEngine


Begun = tuple[int, int | None, dict[str, int]]  # epoch, from when on it counts, horizons


class Registering:
    """Queries that come together: what is the same for all of them is looked up once."""

    def __init__(self, engine: SharedEngine) -> None:
        self._engine = engine
        self._watermark = cache(engine.watermark)
        self._homes = engine.store.homes()
        self._epoch = engine.store.tick()[0] + 1

    def registered(self, query: QueryDef) -> Registered:
        """A query as the engine runs it: as the book knows it, or new."""
        engine, plan = self._engine, query.plan
        check_output(plan)
        resolution_us(plan)
        reads = base_streams(plan)
        for stream in reads:
            engine.streams.setdefault(stream.name, stream)
        found = None if engine.sharing is Sharing.NEVER else normalise(plan)
        begun = engine.store.query(query.name) or self._begin(query)
        epoch, started, horizons = begun
        return Registered(
            query.name,
            engine.pool.one(tuple(f.name for f in plan.schema)),
            engine.pool.one(tuple(sorted(s.name for s in reads))),
            epoch,
            started,
            engine.pool.one(_pairs(horizons)),
            engine.pool.normal(found) if isinstance(found, NormalQuery) else None,
            plan if query.name not in self._homes else None,
        )

    def homes(self, queries: Iterable[Registered]) -> Iterator[tuple[str, str]]:
        """Where those live that lived in a group before a restart."""
        return ((q.name, self._homes[q.name]) for q in queries if q.name in self._homes)

    def _begin(self, query: QueryDef) -> Begun:
        streams = [s.name for s in base_streams(query.plan)]
        now = min(map(self._watermark, streams))
        started = now if BEGINNING < now < FOREVER else None
        if query.from_now and started is not None:
            return self._epoch, started, dict.fromkeys(streams, started)
        return self._epoch, started, _complete_from(self._engine.store, query)


def _complete_from(store: Store, query: QueryDef) -> dict[str, int]:
    """Where a new query's inputs begin: with what is stored in all columns that it needs."""
    streams = base_streams(query.plan)
    needed: Mapping[str, Iterable[int]] = {s.name: range(len(s.fields)) for s in streams}
    if not all(map(store.is_whole, streams)):
        needed = needed_columns([compile_query(query.plan)])
    return {s: store.complete_from(s, columns) for s, columns in needed.items()}


def _pairs(horizons: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple((s, h) for s, h in sorted(horizons.items()) if h > BEGINNING)
