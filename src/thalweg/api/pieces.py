"""Texts as they come from files, and what is wrong with several of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from thalweg.cql import CqlError, Diagnostic


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, or a part of one that begins at a line of it."""

    cql: str
    name: str
    folder: str | None = None  # where relative paths start
    first_line: int = 1

    @property
    def base(self) -> Path | None:
        return Path(self.folder) if self.folder else None


class Unreadable(CqlError):
    """Texts that do not say what shall stand: all mistakes, each in its own text."""

    def __init__(self, found: list[tuple[Piece, Diagnostic]]) -> None:
        super().__init__([d for _, d in found])
        self.found = found

    def render(self, text: str | None = None, name: str | None = None) -> str:
        return "\n\n".join(d.render(p.cql, p.name, p.first_line) for p, d in self.found)
