"""A statement's outline: its text but for the name of a query, its numbers and its strings.

Texts of one outline have the same tokens but for these: the scanner below jumps from one to the
next over whole tokens of the lexer. It may take what the lexer does not; such a text is no
statement, and nothing is known of its outline.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from thalweg.cql.errors import Span
from thalweg.cql.lexer import NUMBER, QUOTED, RESERVED, SKIPPED, STRING, WORD
from thalweg.cql.syntax import Name

# Whether there is a name, then the text around the constants, from behind the name on.
Outline = tuple[bool | str, ...]

_BEGIN = re.compile(
    rf"""
    (?: {SKIPPED} )*+ (?P<start>)
    (?: (?i:CREATE) \s++ (?i:QUERY) \s++ (?! (?i:IF) \s++ (?i:NOT) \b ) (?P<name> {WORD}+ ) )?+
    """,
    re.VERBOSE | re.DOTALL,
)
_NEXT = re.compile(
    rf"""
    (?: [\s+*%=<>(),\[\]{{}}|!]++
      | {WORD}+
      | \. (?! [0-9])
      | {SKIPPED}
      | -
      | / (?! \*)
      | {QUOTED}
    )*+
    (?: ( {NUMBER} ) | ( {STRING} ) | ( ; ) | ( \Z ) )
    """,
    re.VERBOSE | re.DOTALL,
)
_SEMICOLON, _END = 3, 4


class Outlined(NamedTuple):
    """One statement of a text."""

    outline: Outline
    name: Name | None
    constants: list[Span]
    start: int  # of the first token
    stop: int  # of the semicolon, or the end of the text
    following: int  # where the next statement begins
    is_last: bool


def outlined(text: str, position: int) -> Outlined | None:
    """The statement that begins here; None where this can't tell."""
    begin = _BEGIN.match(text, position)
    assert begin is not None
    name = None
    if begin["name"] is not None:
        if begin["name"].upper() in RESERVED:
            return None
        name = Name(begin["name"], begin.span("name"))
    gaps: list[bool | str] = [name is not None]
    constants: list[Span] = []
    position = begin.end()
    match = _NEXT.match
    while True:
        found = match(text, position)
        if found is None:
            return None
        group = found.lastindex
        assert group is not None
        start, end = found.span(group)
        gaps.append(text[position:start])
        position = end
        if group >= _SEMICOLON:
            is_last = group == _END
            return Outlined(tuple(gaps), name, constants, begin.end("start"), start, end, is_last)
        constants.append((start, end))
