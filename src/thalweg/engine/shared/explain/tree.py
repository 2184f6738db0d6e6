"""A description as a tree: the same for people as text and for programs as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Branch:
    """One operator: what it is, remarks below it, its inputs, and facts for programs only."""

    title: str
    remarks: tuple[str, ...] = ()
    inputs: tuple[Branch, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield self.title
        rail = "│  " if self.inputs else "   "
        for remark in self.remarks:
            yield rail + remark
        for child in self.inputs:
            is_last = child is self.inputs[-1]
            first, *rest = child._lines()
            yield ("└─ " if is_last else "├─ ") + first
            for line in rest:
                yield ("   " if is_last else "│  ") + line

    def data(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "remarks": list(self.remarks),
            **self.facts,
            "inputs": [child.data() for child in self.inputs],
        }
