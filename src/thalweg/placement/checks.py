"""Checks of a problem's columns; what is wrong is named by its path in the JSON form."""

from __future__ import annotations

import numpy as np

from thalweg.placement.arrays import NONE, Flags, Floats, Ints, Ragged


class ProblemError(ValueError):
    """A problem that makes no sense, with the place where."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message


def refuse(wrong: Flags, path: str, message: str) -> None:
    if wrong.any():
        raise ProblemError(path.format(int(np.argmax(wrong))), message)


def check_names(names: tuple[str, ...], kind: str) -> None:
    if len(set(names)) == len(names):
        return
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name in seen:
            raise ProblemError(f"$.{kind}[{i}].name", f"there are two {kind} named {name!r}")
        seen.add(name)


def check_length(column: Ints | Floats | Ragged, count: int, path: str) -> None:
    if len(column) != count:
        raise ProblemError(path, f"a column has {len(column)} entries for {count} names")


def check_amounts(column: Floats, count: int, path: str, *, finite: bool = False) -> None:
    check_length(column, count, path.partition("[")[0])
    refuse(~(column >= 0), path, "must be a number, and not negative")  # ~ catches NaN as well
    if finite:
        refuse(~np.isfinite(column), path, "must be finite")


def check_matrix(matrix: Floats, hosts: int, column: str) -> None:
    if matrix.shape != (hosts, hosts):
        raise ProblemError(f"$.{column}", f"must have {hosts} rows of {hosts} numbers")
    if not (matrix >= 0).all():
        row, other = np.argwhere(~(matrix >= 0))[0]
        raise ProblemError(f"$.{column}[{row}][{other}]", "must be a number, and not negative")


def check_indexes(column: Ints, count: int, path: str, kind: str, optional: bool = False) -> None:
    lowest = NONE if optional else 0
    refuse((column < lowest) | (column >= count), path, f"there is no such {kind}")
