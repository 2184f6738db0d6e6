"""From names to numbers, with help for those who mistype."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from thalweg.placement.arrays import NONE
from thalweg.placement.problem import ProblemError


class Names:
    def __init__(self, kind: str, names: Iterable[str]) -> None:
        self.kind = kind
        self.numbers = {name: i for i, name in enumerate(names)}

    def number(self, name: str, path: str) -> int:
        if name in self.numbers:
            return self.numbers[name]
        near = difflib.get_close_matches(name, self.numbers, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ProblemError(path, f"there is no {self.kind} named {name!r}{hint}")

    def optional(self, name: str | None, path: str) -> int:
        return NONE if name is None else self.number(name, path)
