"""Tolerance classes at the home of a stream: which rows are due for whom.

The home keeps, for each key and class, the last update that it passed *of the unfiltered stream*,
and labels each row with the classes for which it is due. So which rows pass does not depend on the
tree below: an edge forwards what any class below it needs, a reader takes the rows of its class.
(COSMOS, seed 000, 4.1.1 lets every parent filter what it was sent itself, by the requirement of its
strictest child. Of 1, 1.2, 1.4, 1.6 a parent at 0.3 gets 1 and 1.4; its child at 0.5 stays at 1.)

A class starts with a held value, by a decision that the home writes down; newcomers to it begin
with what it holds. Limits stand in heaps, so a row costs what is due, not what there is: of 10,000
classes, the many that a small step does not concern are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

from thalweg.plan.coherency.tolerance import Age, Tolerance, Update, is_missing

Class = int  # the home's number for a tolerance
Limit = tuple[Any, int, Class]  # with the turn for which it was set


@dataclass(frozen=True, slots=True)
class Start:
    """A decision: this class begins with this update held (None: with the next one)."""

    name: Class
    tolerance: Tolerance
    held: Update | None


@dataclass(frozen=True, slots=True)
class Due:
    """At this instant this row passes, for these classes, in ascending order."""

    instant: int
    row: Update
    classes: tuple[Class, ...]


class KeyClasses:
    """All classes of one key of one stream."""

    def __init__(self) -> None:
        self.newest: Update | None = None
        self.held: dict[Class, Update] = {}  # what newcomers to a class begin with
        self._tolerances: dict[Class, Tolerance] = {}
        self._turn: dict[
            Class, int
        ] = {}  # goes up when a class passes a row; older limits are void
        self._empty: dict[Class, None] = {}  # hold NULL, or nothing yet
        self._content: dict[Class, None] = {}  # by age, with nothing held back yet
        self._above: list[Limit] = []  # heaps: the high ones,
        self._below: list[Limit] = []  # the low ones with the sign changed,
        self._counts: list[Limit] = []
        self._ages: list[Limit] = []

    def start(self, decision: Start) -> None:
        name = decision.name
        if name in self._tolerances:
            raise ValueError(f"class {name} has started already")
        self._tolerances[name], self._turn[name] = decision.tolerance, 0
        if decision.held is None:
            self._empty[name] = None
        else:
            self._hold(name, decision.held)

    def end(self, name: Class) -> None:
        """Nobody reads it any more."""
        for kept in (self._tolerances, self._turn, self.held, self._empty, self._content):
            kept.pop(name, None)

    def arrive(self, row: Update) -> list[Due]:
        """A row of the unfiltered stream: what passes before it by age, then what it is due for."""
        found = self.advance(row.instant)
        self.newest = row
        for name in self._content:
            limits = self._tolerances[name].limits(self.held[name], row)
            heappush(self._ages, (limits.before, self._turn[name], name))
        self._content = {}
        classes = tuple(sorted(self._reached_by(row)))
        for name in classes:
            self._hold(name, row)
        return [*found, Due(row.instant, row, classes)] if classes else found

    def advance(self, instant: int) -> list[Due]:
        """Time passes: the newest row, for classes whose first held-back row is old by now."""
        found: list[Due] = []
        while self._ages and self._ages[0][0] <= instant:
            at = self._ages[0][0]
            classes = tuple(sorted(self._passed(self._ages, at + 1)))
            assert self.newest is not None
            for name in classes:
                self._hold(name, self.newest)
            if classes:
                found.append(Due(at, self.newest, classes))
        return found

    def _reached_by(self, row: Update) -> dict[Class, None]:
        """Classes that this row is due for."""
        if is_missing(row.value):
            by_value = [*self._passed(self._above, None), *self._passed(self._below, None)]
            filled = [n for n in self._empty if n not in self.held]
        else:
            assert row.value is not None
            by_value = self._passed(self._above, row.value) + self._passed(self._below, -row.value)
            filled = list(self._empty)
        for name in filled:
            del self._empty[name]
        return dict.fromkeys([*filled, *by_value, *self._passed(self._counts, row.number)])

    def _passed(self, heap: list[Limit], reached: Any) -> list[Class]:
        """Those whose limit is below what was reached; of None, all."""
        found = []
        while heap and (reached is None or heap[0][0] < reached):
            _, turn, name = heappop(heap)
            if self._turn.get(name) == turn:
                found.append(name)
        return found

    def _hold(self, name: Class, row: Update) -> None:
        turn = self._turn[name] = self._turn[name] + 1
        self.held[name] = row
        tolerance = self._tolerances[name]
        limits = tolerance.limits(row, None)
        if isinstance(tolerance, Age):
            self._content[name] = None
        elif limits.last_number is not None:
            heappush(self._counts, (limits.last_number, turn, name))
        elif limits.low is not None and limits.high is not None:
            heappush(self._above, (limits.high, turn, name))
            heappush(self._below, (-limits.low, turn, name))
            self._tidy()
        else:
            self._empty[name] = None

    def _tidy(self) -> None:
        """Of a value that only rises no low limit is ever reached: drop those that are void."""
        for heap in (self._above, self._below):
            if len(heap) > 2 * len(self._turn) + 64:
                heap[:] = [limit for limit in heap if self._turn.get(limit[2]) == limit[1]]
                heapify(heap)
