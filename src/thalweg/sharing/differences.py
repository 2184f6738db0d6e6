"""What windows and conditions say together about the timestamps of a joined row.

COSMOS, lemma 3.1: tuples of windows T¹ and T² join only if −T¹ ≤ t₁ − t₂ ≤ T². In general, a row is
in the result at τ only if τ − Tⁱ ≤ tᵢ ≤ τ for each leaf; a window that slides by L may keep a tuple
L − 1 instants longer. With conditions on timestamps and on their
differences these are bounds on differences of variables, and shortest paths give the tightest ones.

All variables count in microseconds, or in instants where the resolution is not needed. A leaf has
two: the instant that its window sees, and the value of its timestamp column, which may lie between
two instants.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from math import inf

from thalweg.plan.expr import Call, Col, Expr
from thalweg.plan.types import BIGINT, TIMESTAMP
from thalweg.sharing.core import Core
from thalweg.sharing.ranges import Range
from thalweg.sharing.timestamps import (
    EPOCH,
    bound_at,
    timestamp_columns,
    timestamp_difference,
    units_of,
)

_ZERO, _NOW = 0, 1
_COMPARED = {"=": (0, 0), "<=": (0, inf), "<": (-1, inf), ">=": (inf, 0), ">": (inf, -1)}


@dataclass(frozen=True, slots=True)
class Differences:
    """`upper[x][y]` is the most that x − y can be."""

    upper: tuple[tuple[float, ...], ...]
    places: dict[Col, int]  # of timestamp columns
    scales: dict[Col, int]  # how many units a timestamp column's 1 is
    resolution: int

    def age(self, leaf: int) -> float:
        """The most instants that a leaf's tuple can be old while the row is in the result."""
        age = self.upper[_NOW][_instant(leaf)]
        return age if age == inf else age // self.resolution

    def range_of(self, expr: Expr) -> Range | None:
        """Between what a timestamp, or a difference of two, must lie; None for other expressions.

        A difference of BIGINTs is in a range only if both ends are known: else it may overflow.
        """
        sides = timestamp_difference(expr)
        if sides is not None:
            x, y = (self.places.get(s) for s in sides)
            if x is None or y is None or self.scales[sides[0]] != self.scales[sides[1]]:
                return None
            found = self._between(x, y, self.scales[sides[0]], None)
            return None if expr.type == BIGINT and None in (found.low, found.high) else found
        if isinstance(expr, Col) and expr in self.places:
            stamp = EPOCH if expr.type == TIMESTAMP else None
            return self._between(self.places[expr], _ZERO, self.scales[expr], stamp)
        return None

    def _between(self, x: int, y: int, scale: int, epoch: datetime | None) -> Range:
        high, low = self.upper[x][y], -self.upper[y][x]
        return Range(
            None if low == -inf else bound_at(-(-int(low) // scale), epoch),
            None if high == inf else bound_at(int(high) // scale, epoch),
        )


def differences(core: Core) -> Differences | None:
    """All that a core says about its timestamps; None if no timestamps can meet it."""
    resolution = core.streams[0].resolution_us
    columns = timestamp_columns(core)
    size = 2 + 2 * len(core.streams)
    upper = [[0 if x == y else inf for y in range(size)] for x in range(size)]
    whole = {_NOW}  # variables that are multiples of the resolution

    def at_most(x: int, y: int, bound: float) -> None:
        upper[x][y] = min(upper[x][y], bound)

    for leaf, window in enumerate(core.windows):
        instant = _instant(leaf)
        whole.add(instant)
        at_most(instant, _NOW, 0)
        age = inf if window.length is None else window.length + window.slide - 1
        at_most(_NOW, instant, age * resolution)
        # The instant is the column's value rounded down to the resolution.
        column = columns[leaf]
        rounding = 0 if column is not None and column[1] == resolution else resolution - 1
        at_most(instant, instant + 1, 0)
        at_most(instant + 1, instant, rounding)
        if rounding == 0:
            whole.add(instant + 1)
    places = {c[0]: _instant(i) + 1 for i, c in enumerate(columns) if c is not None}
    scales = {c[0]: c[1] for c in columns if c is not None}
    known = Differences((), places, scales, resolution)
    for x, y, bound in _stated(core, known):
        at_most(x, y, bound)
    if not _close(upper, whole, resolution):
        return None
    return Differences(tuple(map(tuple, upper)), places, scales, resolution)


def _instant(leaf: int) -> int:
    return 2 + 2 * leaf


def _stated(core: Core, known: Differences) -> list[tuple[int, int, float]]:
    """What the core's conditions say, as `x − y ≤ bound`."""
    found: list[tuple[int, int, float]] = []

    def between(x: int, y: int, scale: int, values: Range) -> None:
        if values.high is not None:
            found.append((x, y, units_of(values.high.value) * scale))
        if values.low is not None:
            found.append((y, x, -units_of(values.low.value) * scale))

    for expr, values in core.ranges:
        sides = timestamp_difference(expr)
        if sides is not None and all(s in known.places for s in sides):
            x, y = (known.places[s] for s in sides)
            if known.scales[sides[0]] == known.scales[sides[1]]:
                between(x, y, known.scales[sides[0]], values)
        elif isinstance(expr, Col) and expr in known.places:
            between(known.places[expr], _ZERO, known.scales[expr], values)
    for join in core.joins:
        match join:
            case Call(function, (Col() as left, Col() as right), _) if function in _COMPARED:
                if left in known.places and right in known.places:
                    x, y, scale = known.places[left], known.places[right], known.scales[left]
                    high, low = _COMPARED[function]
                    found += [(x, y, high * scale), (y, x, low * scale)]
    return [(x, y, bound) for x, y, bound in found if bound != inf]


def _close(upper: list[list[float]], whole: set[int], unit: int) -> bool:
    """Shortest paths, with differences of whole instants rounded down; false on contradiction."""
    size = range(len(upper))
    while True:
        for via in size:
            for x in size:
                for y in size:
                    upper[x][y] = min(upper[x][y], upper[x][via] + upper[via][y])
        if any(upper[x][x] < 0 for x in size):
            return False
        changed = False
        for x in whole:
            for y in whole - {x}:
                bound = upper[x][y]
                if bound != inf and bound % unit:
                    upper[x][y] = bound // unit * unit
                    changed = True
        if not changed:
            return True
