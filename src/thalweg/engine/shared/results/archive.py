"""What queries have said in the retained ticks, tick by tick.

A query that runs alone has its rows written down. What a group has said is written down once, as
the representative's rows, and a member's rows are made of them when somebody reads.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.groups.families import MEMBER, changes, of_member
from thalweg.engine.shared.groups.members import families_of
from thalweg.engine.shared.groups.running_group import RunningGroup
from thalweg.engine.shared.results.results import Results
from thalweg.engine.shared.state.segments import Segment
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick.runner import ENDED, STARTED

Spoken = dict[int, list[tuple[str, Segment]]]  # tick -> (generation or "", segment)


class Archive:
    """`registered` gives a standing query; the archive may be read by any thread."""

    def __init__(self, store: Store, folder: Path, registered: Callable[[str], Run | None]) -> None:
        self._store, self._folder, self._registered = store, folder, registered
        self._generations: dict[str, RunningGroup] = {}

    def ticks(self, query: str, after: int, upto: int | None = None) -> list[int]:
        """Those behind `after` in which the query may have said something."""
        return sorted(t for t in self._spoken(query, after) if upto is None or t <= upto)

    def pages(
        self, query: str, after: int, upto: int | None = None
    ) -> Iterator[tuple[int, pl.DataFrame]]:
        """Its rows, tick by tick; files that are no longer retained are passed over."""
        for tick, segments in sorted(self._spoken(query, after).items()):
            if upto is not None and tick > upto:
                return
            try:
                rows = self._rows(query, segments)
            except FileNotFoundError:
                continue
            if rows.height:
                yield tick, rows

    def _spoken(self, query: str, after: int) -> Spoken:
        found: Spoken = {}
        for tick, segment in self._store.results(query, after):
            found.setdefault(tick, []).append(("", segment))
        homes = self._store.homes_of(query)
        for place, (since, generation) in enumerate(homes):
            until = homes[place + 1][0] if place + 1 < len(homes) else None
            for part in ("", STARTED, ENDED):
                for tick, segment in self._store.results(generation + part, max(after, since - 1)):
                    if until is None or tick < until:
                        found.setdefault(tick, []).append((generation, segment))
        return found

    def _rows(self, query: str, segments: list[tuple[str, Segment]]) -> pl.DataFrame:
        # A reader of its own: the engine's forgets files while others may be reading.
        results = Results(self._folder)
        generation = segments[0][0]
        if not generation:
            return results.rows([s for _, s in segments])
        member = self._registered(query)
        home = self._generation(generation)
        if member is None or member.normal is None or home is None:
            return pl.DataFrame()
        if home.family is not None:
            said = results.rows([s for _, s in segments])
            return of_member(said, home.family.members.index(query))
        (family,) = families_of(home.representative, [member])
        started, ended = (
            results.group_rows([s for _, s in segments if s.table.endswith(part)], home.operator)
            for part in (STARTED, ENDED)
        )
        low, high = segments[0][1].low, segments[0][1].high
        return changes(family, started, ended, low, high).drop(MEMBER)

    def _generation(self, name: str) -> RunningGroup | None:
        if name not in self._generations:
            packed = self._store.generation(name)
            if packed is None:
                return None
            self._generations[name] = pickle.loads(packed)
        return self._generations[name]
