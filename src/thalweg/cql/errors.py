"""What goes wrong in a text, and how it is shown: place, source line, caret, suggestion."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

Span = tuple[int, int]  # offsets into the text, end not included

DEFAULT_NAME = "<cql>"
_LONGEST_LINE = 400  # characters: more is not read
_MOST_SHOWN = 20  # errors of one text


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning; line and column count from 1."""

    message: str
    line: int
    column: int
    length: int = 1
    hint: str | None = None
    severity: str = "error"

    def render(self, text: str, name: str = DEFAULT_NAME, first_line: int = 1) -> str:
        """`first_line` is that of the text in the file `name`, which it may be a part of."""
        line = self.line + first_line - 1
        head = f"{_cut(name)}:{line}:{self.column}: {self.severity}: {_cut(self.message)}"
        lines = text.split("\n")
        shown = [head]
        if self.line <= len(lines):
            # Of a very long line, what stands around the place.
            first = max(0, self.column - 1 - _LONGEST_LINE // 2)
            source = lines[self.line - 1].rstrip("\r")[first : first + _LONGEST_LINE]
            # Tabs stay tabs before the caret, so that it lines up however wide they are shown.
            indent = "".join("\t" if c == "\t" else " " for c in source[: self.column - 1 - first])
            room = max(1, len(source) - (self.column - first) + 1)
            shown += [f"  {source}", f"  {indent}{'^' * max(1, min(self.length, room))}"]
        if self.hint is not None:
            shown.append(f"help: {_cut(self.hint)}")
        return "\n".join(shown)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…"


class CqlError(Exception):
    """A text that can't be taken. Nothing of it has been registered."""

    def __init__(
        self, diagnostics: Iterable[Diagnostic], text: str = "", name: str = DEFAULT_NAME
    ) -> None:
        self.diagnostics = tuple(diagnostics)
        self.text = text
        self.name = name
        super().__init__(*(d.message for d in self.diagnostics))

    def render(self, text: str | None = None, name: str | None = None) -> str:
        source = self.text if text is None else text
        label = self.name if name is None else name
        shown = [d.render(source, label) for d in self.diagnostics[:_MOST_SHOWN]]
        if len(self.diagnostics) > _MOST_SHOWN:
            shown.append(f"and {len(self.diagnostics) - _MOST_SHOWN} more errors")
        return "\n\n".join(shown)

    def __str__(self) -> str:
        return self.render()


FOLLOWS = "the statement that makes it was not taken, either: see above"
_NOT_A_NAME = r"(?:\s+(?:OR|REPLACE|IF|NOT|EXISTS|STREAM|RELATION|TABLE|VIEW|QUERY)\b)+"


class Mistake(Exception):
    """An error on its way to a CqlError: it knows offsets, not yet lines."""

    def __init__(
        self, message: str, span: Span, hint: str | None = None, *, unknown: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint
        self.unknown = unknown  # the name that was not found, if that is the error

    def diagnostic(self, text: str, severity: str = "error") -> Diagnostic:
        start, end = self.span
        line = text.count("\n", 0, start) + 1
        column = start - (text.rfind("\n", 0, start) + 1) + 1
        # Names may be as long as texts: who is told reads a line.
        message, hint = _cut(self.message), None if self.hint is None else _cut(self.hint)
        return Diagnostic(message, line, column, max(1, end - start), hint, severity)


def was_to_be_made(name: str, before: str) -> bool:
    """Whether a text creates this name. Where it is unknown all the same, that has failed."""
    this = rf'{_NOT_A_NAME}\s+"?{re.escape(name)}(?!\w)'
    made = [m.end() for m in re.finditer(rf"\bCREATE{this}", before, re.IGNORECASE)]
    return bool(made) and not re.search(rf"\bDROP{this}", before[made[-1] :], re.IGNORECASE)


def closest(name: str, candidates: Iterable[str], cutoff: float = 0.65) -> str | None:
    """The candidate that was probably meant, if one is close."""
    by_key = {c.lower(): c for c in candidates}
    found = difflib.get_close_matches(name.lower(), by_key, n=1, cutoff=cutoff)
    return by_key[found[0]] if found else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    found = closest(name, candidates)
    return f'did you mean "{found}"?' if found is not None else None


_WINDOWS_ELSEWHERE = ("tumble", "hop", "session", "window", "table")


def window_help(function: str) -> str | None:
    """For those who know windows as functions, such as TUMBLE(…) or TUMBLE_START(…)."""
    if function.lower().split("_")[0] not in _WINDOWS_ELSEWHERE:
        return None
    return (
        "windows stand after the stream: FROM S [Tumble 1 minute], [Hop 1 minute EVERY 10 seconds] "
        "or [Session 5 minutes]; their bounds are the columns window_start and window_end"
    )
