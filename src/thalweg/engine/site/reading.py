"""Reading results back: pages of committed rows behind a position, and waiting for more."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from thalweg.engine.changelog import Change
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.frames import OP, TS, names
from thalweg.engine.shared.results.archive import Said
from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.site.errors import Forgotten
from thalweg.engine.site.positions import START, Position
from thalweg.plan.windows import BEGINNING


@dataclass(frozen=True, slots=True)
class Page:
    """Rows that one query said in one tick, in canonical order; of the first one's instant,
    `skipped` stand before it."""

    emission: Emission
    skipped: int = 0

    @property
    def last(self) -> Position:
        *_, last = self.ids()
        return last

    def ids(self) -> Iterator[Position]:
        run, instants = self.emission.run, self.emission.rows[TS].to_numpy()
        ordinals = self.emission.ordinals()
        if self.skipped and len(instants):
            ordinals = np.where(instants == instants[0], ordinals + self.skipped, ordinals)
        for instant, ordinal in zip(instants.tolist(), ordinals.tolist(), strict=True):
            yield Position(run, instant, ordinal)

    def changes(self) -> Iterator[Change]:
        """Every row with its instant and + or -."""
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


class Reader:
    """Reads what one query has said, for as long as it stands: a later query of its name is another
    one. It sees committed ticks only, and never waits for a tick that runs."""

    def __init__(self, engine: SharedEngine, query: str, columns: tuple[str, ...]) -> None:
        self._engine, self.query, self.columns = engine, query, columns
        self.run = self._run() or 0

    def _run(self) -> int | None:
        """The creation number of the query that stands under this name now."""
        registered = self._engine.roster.queries.get(self.query)
        if registered is not None:
            return registered.number
        parked = self._engine.store.runs.begun([self.query]).get(self.query)
        return None if parked is None else parked.run

    def frontier(self) -> Position:
        """All rows before this instant have been said."""
        run = self._engine.roster.run_of(self.query)
        reached = None if run is None else self._engine.store.frontier(run.flow)
        return Position(self.run, BEGINNING if reached is None else reached)

    def check(self, after: Position) -> None:
        """Raises Forgotten if rows behind this position may be gone."""
        if after == START:
            return
        if after.run != self.run:
            raise Forgotten(
                f"{after} is an id of another query: {self.query} was created anew, and its rows' "
                f"ids begin with {self.run}. Read again without a position."
            )
        complete = self._engine.archive.complete_from(self.query)
        if after.instant < complete:
            raise Forgotten(
                f"results behind {after} are no longer kept: they are complete from instant "
                f"{complete} on. Read again without a position to start there."
            )

    def pages(self, after: Position = START, upto: Position | None = None) -> Iterator[Page]:
        """What the query has said behind a position (and before a frontier), a page per tick."""
        if self._run() != self.run:
            return
        for said in self._engine.archive.pages(self.query, after.instant):
            if upto is not None and said.upto > upto.instant:
                return
            page = self._page(said).behind(after)
            if page.emission.rows.height:
                yield page

    def tail(self, rows: int) -> list[Page]:
        """The pages that hold the query's last rows, so many of them or a few more."""
        found: list[Page] = []
        count = 0
        for said in self._engine.archive.newest_first(self.query):
            found.insert(0, self._page(said))
            count += said.rows.height
            if count >= rows:
                break
        return found

    def _page(self, said: Said) -> Page:
        emission = Emission(self.query, self.run, self.columns, said.low, said.upto, said.rows)
        return Page(emission)


class Changes:
    """Counts ticks and changes of the catalog, for those who wait for the next."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._changes = 0

    def tell(self) -> None:
        with self._changed:
            self._changes += 1
            self._changed.notify_all()

    @property
    def count(self) -> int:
        """Take it before looking for rows, then `wait` for the next."""
        return self._changes

    def wait(self, seen: int, timeout_s: float) -> bool:
        """Until something has changed since `seen`; whether it did in time."""
        until = time.monotonic() + timeout_s
        with self._changed:
            while self._changes == seen:
                left = until - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
            return True
