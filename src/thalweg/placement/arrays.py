"""Columns of numbers: what large problems are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

_T = TypeVar("_T", bound=np.generic)

NONE = -1  # in a column of indexes: no such thing


def floats(values: Iterable[float] | Floats) -> Floats:
    return _frozen(np.asarray(values if isinstance(values, np.ndarray) else list(values), float))


def ints(values: Iterable[int] | npt.NDArray[np.integer]) -> Ints:
    array = np.asarray(values if isinstance(values, np.ndarray) else list(values), np.int32)
    return _frozen(array)


def table(rows: Iterable[Sequence[int]] | npt.NDArray[np.integer], width: int) -> Ints:
    """Distinct rows in lexicographic order, so that equal contents are equal arrays."""
    array = np.asarray(rows if isinstance(rows, np.ndarray) else list(rows), np.int32)
    array = array.reshape(-1, width)
    # As np.unique over rows, which takes twenty times as long on millions of them.
    array = array[np.lexsort(array.T[::-1])]
    new = np.ones(len(array), bool)
    new[1:] = (array[1:] != array[:-1]).any(axis=1)
    return _frozen(array[new])


def _frozen(array: npt.NDArray[_T]) -> npt.NDArray[_T]:
    if array.flags.writeable:
        array = array.copy()  # the caller keeps its own array, and may go on writing to it
        array.flags.writeable = False
    return array


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """A list of lists of indexes, in two arrays: row i is indices[starts[i]:starts[i + 1]]."""

    starts: npt.NDArray[np.int64]
    indices: Ints

    def __post_init__(self) -> None:
        if len(self.starts) == 0 or self.starts[0] != 0 or self.starts[-1] != len(self.indices):
            raise ValueError("row starts must begin at 0 and end at the number of indices")

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> Ints:
        return self.indices[self.starts[row] : self.starts[row + 1]]

    def __iter__(self) -> Iterator[Ints]:
        return (self[i] for i in range(len(self)))

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        return np.diff(self.starts)


def ragged(rows: Iterable[Iterable[int]]) -> Ragged:
    lists = [list(row) for row in rows]
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(row) for row in lists], out=starts[1:])
    return Ragged(starts, ints(i for row in lists for i in row))


def grouped(keys: Ints, groups: int) -> Ragged:
    """The positions of each key 0 … groups − 1, in ascending order."""
    starts = np.zeros(groups + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=groups), out=starts[1:])
    return Ragged(starts, ints(np.argsort(keys, kind="stable").astype(np.int32)))
