"""Reading results back: pages of committed rows after a position, and waiting for more."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from thalweg.engine.changelog import Change
from thalweg.engine.shared.frames import OP, TS, names
from thalweg.engine.shared.results.archive import Archive
from thalweg.engine.shared.results.results import Emission
from thalweg.engine.shared.state.store import Store
from thalweg.engine.site.errors import Forgotten
from thalweg.engine.site.positions import Position


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows that one query said in one tick, in canonical order; ids count from `first`."""

    emission: Emission
    first: int

    @property
    def tick(self) -> int:
        return self.emission.tick

    @property
    def last(self) -> Position:
        return Position(self.emission.tick, self.first + self.emission.rows.height - 1)

    def ids(self) -> Iterator[Position]:
        for index in range(self.emission.rows.height):
            yield Position(self.emission.tick, self.first + index)

    def changes(self) -> Iterator[Change]:
        """Every row with its instant and + or -."""
        columns = names(len(self.emission.columns))
        for ts, op, *row in self.emission.rows.select(TS, OP, *columns).iter_rows():
            yield Change(ts, "+" if op > 0 else "-", tuple(row))


class Reading:
    """Readers see committed ticks only, and never wait for a tick that runs."""

    def __init__(self, store: Store, archive: Archive, retained_ticks: int) -> None:
        self._store, self._archive, self._retained = store, archive, retained_ticks
        self._changed = threading.Condition()
        self._changes = 0

    def last_tick(self) -> int:
        """The number of the last committed tick."""
        number, record = self._store.tick()
        return number if record is None else number - 1

    def check(self, after: Position) -> None:
        """Raises Forgotten if rows behind this position may be gone."""
        oldest = self.last_tick() - self._retained + 1  # that is kept
        complete = after.tick + 1 if after == Position(after.tick) else after.tick
        if complete < oldest and after != Position(0):
            raise Forgotten(
                f"results behind {after} are no longer kept: the oldest are of tick {oldest}. "
                "Read again without a position to start there."
            )

    def pages(
        self, query: str, columns: tuple[str, ...], after: Position, upto: int | None = None
    ) -> Iterator[Page]:
        """What the query has said behind a position (up to and with a tick), a page per tick."""
        for number, said in self._archive.pages(query, after.tick - 1, upto):
            first = after.row + 1 if number == after.tick else 0
            rows = said.slice(first)
            if rows.height:
                yield Page(Emission(query, number, columns, rows), first)

    def tail(self, query: str, columns: tuple[str, ...], rows: int) -> list[Page]:
        """The pages that hold the query's last rows, so many of them or a few more."""
        found: list[Page] = []
        for tick in reversed(self._archive.ticks(query, 0)):
            found = [*self.pages(query, columns, Position(tick - 1), tick), *found]
            if sum(p.emission.rows.height for p in found) >= rows:
                break
        return found

    # --- waiting

    def changed(self) -> None:
        with self._changed:
            self._changes += 1
            self._changed.notify_all()

    @property
    def changes(self) -> int:
        """Counts on with every tick; take it before looking for rows, then `wait` for the next."""
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
