"""What the text formats have in common: blocks of whole lines, each line a row or refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from thalweg.engine.shared.ingest.normalise import RAW, REFUSED

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Lines = list[tuple[int, bytes]]  # what a line is called by, and the line without its end


@dataclass(frozen=True, slots=True)
class Block:
    """Some lines of a file, each with its line end; `first` counts the lines before them.

    Where lines are not counted, `numbers` and `unit` say what they are called by.
    """

    file: str
    first: int
    text: bytes
    numbers: Sequence[int] | None = None
    unit: str = "line"

    @property
    def count(self) -> int:
        return self.text.count(b"\n")

    def numbered(self) -> Lines:
        """(line number from 1, line without its end) of the lines that are not blank."""
        lines = [x.removesuffix(b"\r") for x in self.text.removesuffix(b"\n").split(b"\n")]
        numbers = self.numbers or range(self.first + 1, self.first + 1 + len(lines))
        return [(n, line) for n, line in zip(numbers, lines, strict=True) if line.strip()]

    def without_mark(self) -> Block:
        """A byte order mark that some systems put at a file's beginning is not part of it."""
        return Block(self.file, self.first, self.text.removeprefix(_BYTE_ORDER_MARK))

    def without_first_rows(self, count: int) -> Block:
        if count <= 0:
            return self
        rest = self.text.split(b"\n", count)
        return Block(self.file, self.first + count, rest[count] if len(rest) > count else b"")


class LineFormat(Protocol):
    """How lines become rows. One file at a time, from its first block on."""

    def begin(self, block: Block) -> Block:
        """A new file: what its head says is noted; the block without it."""

    def frame(self, block: Block) -> pl.DataFrame:
        """The block's rows, in order; what is no row is refused in place."""


def is_utf8(text: bytes) -> bool:
    """Arrow's JSON reader does not look, and Polars trusts it."""
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def refused(
    columns: Sequence[str], block: Block, number: int, line: bytes, why: str
) -> pl.DataFrame:
    """A line that is no row: a row of nothing but NULL, and the reason."""
    reason = f"{block.file}, {block.unit} {number}: {why}"
    raw = line.decode(errors="replace")
    return pl.DataFrame({**{c: [None] for c in columns}, REFUSED: [reason], RAW: [raw]})


def together(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Rows and refused lines in order; NULL takes any type."""
    return pl.concat(parts, how="diagonal_relaxed")
