"""Reading results back: pages of committed rows behind a position, and waiting for more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from thalweg.engine.changelog import Change
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.frames import OP, TS, names
from thalweg.engine.shared.results.archive import Said
from thalweg.engine.shared.results.content import closing
from thalweg.engine.shared.results.emission import Emission, EndMark
from thalweg.engine.shared.state.versions import Ended
from thalweg.engine.site.errors import Forgotten
from thalweg.engine.site.positions import START, Position
from thalweg.engine.site.status import instant_text
from thalweg.plan.windows import BEGINNING, FOREVER


@dataclass(frozen=True, slots=True)
class Page:
    """Rows that one query said in one tick, in canonical order; of the first one's instant,
    `skipped` stand before it."""

    emission: Emission
    skipped: int = 0

    @property
    def last(self) -> Position:
        """Behind this page; behind an end mark, behind all that the version has said."""
        if self.mark is not None:
            return Position(self.emission.run, FOREVER)
        *_, last = self.ids()
        return last

    @property
    def mark(self) -> EndMark | None:
        """Stands behind the rows."""
        return self.emission.mark

    def ids(self) -> Iterator[Position]:
        run, instants = self.emission.run, self.emission.rows[TS].to_numpy()
        ordinals = self.emission.ordinals()
        if self.skipped and len(instants):
            ordinals = np.where(instants == instants[0], ordinals + self.skipped, ordinals)
        for instant, ordinal in zip(instants.tolist(), ordinals.tolist(), strict=True):
            yield Position(run, instant, ordinal)

    def changes(self) -> Iterator[Change]:
        """Every row with its instant and + or -."""
        if not self.emission.rows.height:
            return
        columns = names(len(self.emission.columns))
        for ts, op, *row in self.emission.rows.select(TS, OP, *columns).iter_rows():
            yield Change(ts, "+" if op > 0 else "-", tuple(row))

    def behind(self, after: Position) -> Page:
        """The rows that follow a position."""
        instants = self.emission.rows[TS].to_numpy()
        start = int(np.searchsorted(instants, after.instant, side="left"))
        last = int(np.searchsorted(instants, after.instant, side="right"))
        skipped = min(after.ordinal + 1, last - start)
        rows = self.emission.rows.slice(start + skipped)
        is_within = start + skipped < last
        return Page(replace(self.emission, rows=rows), skipped if is_within else 0)


@dataclass(frozen=True, slots=True)
class _Version:
    """What one version has said: in which ticks; `ended` if another has replaced it."""

    run: int
    columns: tuple[str, ...]
    ticks: tuple[int, int]
    ended: Ended | None = None


class Reader:
    """Reads what one query has said, for as long as it stands, through all its versions: a query
    that was dropped and made anew is another one. It sees committed ticks only, and never waits for
    a tick that runs."""

    def __init__(
        self, engine: SharedEngine, query: str, columns: Callable[[], tuple[str, ...]]
    ) -> None:
        self._engine, self.query, self._columns = engine, query, columns
        self.origin = self._origin()

    @property
    def run(self) -> int:
        """The creation number of the version that stands now."""
        registered = self._engine.roster.queries.get(self.query)
        if registered is not None:
            return registered.number
        parked = self._engine.store.runs.begun([self.query]).get(self.query)
        return 0 if parked is None else parked.run

    def _origin(self) -> int:
        lineage = self._engine.store.versions.lineage(self.query)
        return self.run if lineage is None else lineage.origin

    @property
    def stands(self) -> bool:
        """Whether the query is still the one for which the reader was made."""
        return self._origin() == self.origin

    def _versions(self) -> list[_Version]:
        """Those of which rows are retained, and the one that stands, oldest first."""
        lineage = self._engine.store.versions.lineage(self.query)
        ended = self._engine.store.versions.ended(self.query)
        found = [_Version(e.run, e.columns, (e.first_tick, e.last_tick), e) for e in ended]
        if lineage is not None and lineage.pending and ended:
            # The end mark comes with the first words of the successor.
            found[-1] = replace(found[-1], ended=None)
        elif all(e.run != self.run for e in ended):
            behind = ended[-1].last_tick + 1 if ended else 0
            found.append(_Version(self.run, self._columns(), (behind, FOREVER)))
        return found

    def frontier(self) -> Position:
        """All rows before this instant have been said."""
        lineage = self._engine.store.versions.lineage(self.query)
        if lineage is not None and lineage.pending:
            ended = self._engine.store.versions.ended(self.query)
            return Position(ended[-1].run, ended[-1].instant) if ended else START
        run = self._engine.roster.run_of(self.query)
        reached = None if run is None else self._engine.store.frontier(run.flow)
        if run is None:
            reached = self._engine.frozen.retired_at(self.query)
        return Position(self.run, BEGINNING if reached is None else reached)

    def check(self, after: Position) -> None:
        """Raises Forgotten if rows behind this position may be gone."""
        if after == START:
            return
        ended = {e.run: e for e in self._engine.store.versions.ended(self.query)}
        if after.run not in {*ended, self.run}:
            raise Forgotten(
                f"{after} is an id of another query: {self.query} was created anew, and its rows' "
                f"ids begin with {self.run}. Read again without a position."
            )
        archive = self._engine.archive
        if after.run in ended:
            complete = archive.complete_before(ended[after.run])
        else:
            complete = archive.complete_from(self.query)
        if after.instant < complete:
            raise Forgotten(
                f"results behind {after} are no longer kept: they are complete from "
                f"{self._instant_text(complete)} on. Read again without a position to start there."
            )

    def _instant_text(self, instant: int) -> str:
        """As the query's streams write it."""
        run = self._engine.roster.queries.get(self.query)
        if run is None:
            return str(instant)
        stream = self._engine.streams[run.streams[0]]
        is_temporal = stream.timestamp_type.is_temporal
        return instant_text(instant, stream.resolution_us, is_temporal) or "the beginning"

    def pages(self, after: Position = START, upto: Position | None = None) -> Iterator[Page]:
        """What the query has said behind a position (and before a frontier), a page per tick."""
        if not self.stands:
            return
        for version in self._versions():
            if version.run < after.run or (version.run, FOREVER) == after[:2]:
                continue
            if upto is not None and version.run > upto.run:
                return
            yield from self._pages_of(version, after, upto)

    def _pages_of(
        self, version: _Version, after: Position, upto: Position | None
    ) -> Iterator[Page]:
        since = after.instant if after.run == version.run else BEGINNING
        here = Position(version.run, since, after.ordinal if after.run == version.run else -1)
        for said in self._engine.archive.pages(self.query, since, version.ticks):
            if upto is not None and upto.run == version.run and said.upto > upto.instant:
                return
            page = self._page(version, said).behind(here)
            if page.emission.rows.height:
                yield page
        if version.ended is not None and (upto is None or upto.run > version.run):
            yield Page(closing(self.query, version.ended)).behind(here)

    def tail(self, rows: int) -> list[Page]:
        """The pages that hold the query's last rows, so many of them or a few more."""
        found: list[Page] = []
        count = 0
        version = self._versions()[-1]
        for said in self._engine.archive.newest_first(self.query, version.ticks[0]):
            found.insert(0, self._page(version, said))
            count += said.rows.height
            if count >= rows:
                break
        return found

    def _page(self, version: _Version, said: Said) -> Page:
        run, columns = version.run, version.columns
        return Page(Emission(self.query, run, columns, said.low, said.upto, said.rows))
