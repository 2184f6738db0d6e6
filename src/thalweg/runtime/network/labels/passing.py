"""All tolerance classes of a stream at its home: for which of them each row is due.

One pass over the unfiltered rows, in order, for all classes together. What has passed last of a key
for a class is kept as the number of a row, and of the rows those that some class holds. So state is
what the unfiltered stream makes of the classes: it is written down now and then (`keeping.py`), and
what came since is passed once more after a restart.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from thalweg.plan.catalog import StreamDef
from thalweg.plan.coherency.tolerance import Tolerance
from thalweg.plan.nodes import Tolerant
from thalweg.plan.types import BIGINT
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.network.labels.families import NOTHING, Family, Keying, Ranks, ranked

_MOST_FRAMES = 256  # of rows that are held, before they become one


@dataclass(frozen=True, slots=True)
class Due:
    """Rows that are due, in order, and the class for which: one of each."""

    row: np.ndarray
    class_: np.ndarray


class Passing:
    def __init__(self, instant: int = BEGINNING) -> None:
        self.instant = instant  # all rows below have passed
        self.next_row = 0
        self.keyings: dict[tuple[str, ...], Keying] = {}
        self.families: dict[tuple[tuple[str, ...], str | None], Family] = {}
        self._rows: list[tuple[np.ndarray, pl.DataFrame]] = []

    @property
    def classes(self) -> set[int]:
        return {c for f in self.families.values() for c in f.classes}

    # --- classes

    def start(self, stream: StreamDef, classes: Mapping[int, Tolerant]) -> None:
        """Nothing has passed for these."""
        found: dict[tuple[tuple[str, ...], str | None], list[tuple[int, Tolerance]]] = {}
        fields = stream.fields
        for number, node in classes.items():
            per = tuple(fields[k].name for k in node.per)
            column = None if node.column is None else fields[node.column].name
            found.setdefault((per, column), []).append((number, node.tolerance))
        types = {f.name: f.type for f in fields}
        for (per, column), of in found.items():
            self.keyings.setdefault(per, Keying(per))
            type_ = BIGINT if column is None else types[column]
            family = self.families.setdefault((per, column), Family(per, column, type_))
            family.add([n for n, _ in of], [t for _, t in of])
            family.make_room(len(self.keyings[per].places))

    def end(self, classes: Collection[int]) -> None:
        for place, family in list(self.families.items()):
            left = [i for i, c in enumerate(family.classes) if c not in classes]
            if not left:
                del self.families[place]
            elif len(left) < len(family.classes):
                family.keep(left)
        read = {per for per, _ in self.families}
        self.keyings = {per: keying for per, keying in self.keyings.items() if per in read}

    # --- rows

    def run(self, rows: pl.DataFrame) -> Due:
        """Rows of the unfiltered stream, in order, which all have passed then."""
        if not rows.height or not self.families:
            nothing = np.empty(0, dtype=np.int64)
            return Due(nothing, nothing)
        ranks: dict[tuple[str, ...], Ranks] = {}
        parts = []
        for family in self.families.values():
            keying = self.keyings[family.per]
            if family.per not in ranks:
                ranks[family.per] = ranked(keying, rows)
            family.make_room(len(keying.places))
            row, at = family.run(rows, ranks[family.per], self.next_row)
            parts.append((row, np.array(family.classes, dtype=np.int64)[at]))
        row, class_ = (np.concatenate(of) for of in zip(*parts, strict=True))
        order = np.argsort(row, kind="stable")
        row, class_ = row[order], class_[order]
        self._hold(rows, np.unique(row))
        self.next_row += rows.height
        return Due(row, class_)

    def _hold(self, rows: pl.DataFrame, passed: np.ndarray) -> None:
        if len(passed):
            self._rows.append((self.next_row + passed, rows[passed]))
        if len(self._rows) > _MOST_FRAMES:
            numbers, frames = zip(*self._rows, strict=True)
            self._rows = [(np.concatenate(numbers), pl.concat(frames))]

    def tidy(self) -> None:
        """Rows go that no class holds."""
        numbers = self.numbers_held()
        if self._rows:
            self._rows = [(numbers, self.rows(numbers))] if len(numbers) else []

    def numbers_held(self) -> np.ndarray:
        held = [np.unique(f.row) for f in self.families.values()]
        numbers = np.unique(np.concatenate([*held, np.array([NOTHING])]))
        found: np.ndarray = numbers[numbers != NOTHING]
        return found

    def rows(self, numbers: np.ndarray) -> pl.DataFrame:
        """Rows that are held, by their numbers."""
        known = np.concatenate([n for n, _ in self._rows])
        at = np.searchsorted(known, numbers)
        assert (known[at] == numbers).all(), "it is held"
        return pl.concat([frame for _, frame in self._rows])[at]

    def hold(self, numbers: np.ndarray, rows: pl.DataFrame) -> None:
        """Rows from elsewhere, behind all that are here."""
        if len(numbers):
            self._rows.append((numbers, rows))

    def held(self, class_: int) -> pl.DataFrame | None:
        """What a class holds: of each key a row at most. None: nothing has passed."""
        for family in self.families.values():
            if class_ in family.classes:
                numbers = family.row[:, family.classes.index(class_)]
                numbers = np.unique(numbers[numbers != NOTHING])
                return self.rows(numbers) if len(numbers) else None
        return None

    # --- classes that have begun apart

    def absorb(self, other: Passing) -> None:
        """Classes that have passed the same rows, up to the same instant, by themselves."""
        for per, keying in other.keyings.items():
            mine = self.keyings.setdefault(per, Keying(per))
            to = [mine.places.setdefault(k, len(mine.places)) for k in keying.places]
            place = np.array(to, dtype=np.int64)
            counts = np.zeros(len(mine.places), dtype=np.int64)
            counts[: len(mine.counts)] = mine.counts
            # Who has come later may know of fewer rows: only differences count.
            is_new = place >= len(mine.counts)
            counts[place[is_new]] = keying.counts[is_new]
            mine.counts = counts
            families = [f for f in other.families.values() if f.per == per]
            for family in families:
                self._absorb(other, family, place, counts[place] - keying.counts)
        for numbers, rows in other._rows:
            self.hold(self.next_row + numbers, rows)
        self.next_row += other.next_row

    def _absorb(self, other: Passing, family: Family, place: np.ndarray, ahead: np.ndarray) -> None:
        own = self.families.setdefault(
            (family.per, family.column), Family(family.per, family.column, family.type)
        )
        first = len(own.classes)
        own.add(family.classes, family.tolerances)
        own.make_room(len(self.keyings[family.per].places))
        key, class_ = np.nonzero(family.row[: len(place)] != NOTHING)
        if not len(key):
            return
        found = other.values_held(family, key, class_)
        if isinstance(found, np.ndarray):
            found = found + ahead[key]
        row = self.next_row + family.row[key, class_]
        own.restore(place[key], first + class_, row, found)

    def values_held(
        self, family: Family, key: np.ndarray, class_: np.ndarray
    ) -> np.ndarray | pl.Series:
        if family.column is None:
            return family.numbers_held(key, class_)
        numbers, inverse = np.unique(family.row[key, class_], return_inverse=True)
        return self.rows(numbers)[family.column][inverse]


def labels(due: Due, words: Mapping[int, str]) -> tuple[np.ndarray, pl.Series]:
    """The rows that are due for a class that has words, each once, and their labels."""
    numbers = np.array(sorted(words), dtype=np.int64)
    if not len(due.row) or not len(numbers):
        return np.empty(0, dtype=np.int64), pl.Series([], dtype=pl.String)
    at = np.searchsorted(numbers, due.class_)
    at[at == len(numbers)] = 0
    named = numbers[at] == due.class_
    row, at = due.row[named], at[named]
    rows, count = np.unique(row, return_counts=True)
    texts = pl.Series([words[n] for n in numbers.tolist()], dtype=pl.String)[at]
    listed = _as_lists(texts, count)
    return rows, listed.list.join(",")


def _as_lists(texts: pl.Series, count: np.ndarray) -> pl.Series:
    bounds = np.concatenate([[0], np.cumsum(count)])
    made = pa.LargeListArray.from_arrays(pa.array(bounds, pa.int64()), texts.to_arrow())
    return pl.Series(values=pl.from_arrow(made))
