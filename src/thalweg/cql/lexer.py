"""Text to tokens.

Keywords are not a kind of their own: nearly all of CQL's words (timestamp, range, rows, now, …)
are also good column names, so the parser decides by place. Only RESERVED words never name anything
unless they are double-quoted.
"""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

from thalweg.cql.errors import Mistake, Span


class Kind(enum.Enum):
    WORD = "word"
    QUOTED = "quoted name"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end of text"


class Token(NamedTuple):
    """`key` is what the grammar compares: a word in capitals, a symbol as it stands, else ''."""

    kind: Kind
    text: str
    key: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return self.start, self.end

    @property
    def value(self) -> str:
        """A string or quoted name without its quotes."""
        return unquoted(self.text)

    @property
    def described(self) -> str:
        if self.kind is Kind.END:
            return "the end of the text"
        return self.text if self.kind in (Kind.STRING, Kind.QUOTED) else f'"{self.text}"'


def unquoted(text: str) -> str:
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)


_RESERVED_WORDS = (
    "ALL AND AS BETWEEN BY CASE CAST CREATE CROSS DISTINCT DROP DSTREAM ELSE END EXCEPT "
    "EXISTS FALSE FROM FULL GROUP HAVING IN INNER INTERSECT IS ISTREAM JOIN LEFT LIKE "
    "LIMIT NATURAL NOT NULL ON OR ORDER OUTER RIGHT RSTREAM SELECT THEN TRUE UNION USING "
    "WHEN WHERE WITH "
)
RESERVED = frozenset(_RESERVED_WORDS.split())

# Parts of the pattern of tokens, in verbose form, and of the one of outlines (`cql.outline`).
SKIPPED = r"\s++ | --[^\n]*+ | /\*.*?\*/"
WORD = r"[^\W\d]\w*"
NUMBER = r"(?: [0-9]+ (?: \.[0-9]* )? | \.[0-9]+ ) (?: [eE][+-]?[0-9]+ )?"
STRING = r"' [^']* (?: '' [^']* )* '"
QUOTED = r'" (?! " (?! ")) [^"]* (?: "" [^"]* )* "'

# White space and comments, then one token: the group's number says which kind. What was skipped
# is not tried again in other ways (*+), which a stray character behind much of it would need.
_PATTERN = re.compile(
    rf"""
    (?: {SKIPPED} )*+
    (?:
        ( {WORD} )
      | ( {NUMBER} )
      | ( <> | <= | >= | != | \|\| | [-+*%=<>(),.;\[\]{{}}] | /(?!\*) )
      | ( {STRING} )
      | ( {QUOTED} )
      | ( \Z )
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_SPACE = re.compile(f"(?: {SKIPPED} )*+", re.VERBOSE | re.DOTALL)
_KINDS = (Kind.END, Kind.WORD, Kind.NUMBER, Kind.SYMBOL, Kind.STRING, Kind.QUOTED, Kind.END)
_WORD, _SYMBOL, _END = 1, 3, 6


def tokenize(text: str) -> list[Token]:
    """All tokens, then one of kind END. Raises Mistake where no token can start."""
    tokens: list[Token] = []
    position = 0
    while not tokens or tokens[-1].kind is not Kind.END:
        position = take_statement(text, position, tokens)
    return tokens


def take_statement(text: str, position: int, tokens: list[Token]) -> int:
    """Append tokens up to and with the next semicolon; gives the place behind it."""
    match = _PATTERN.match
    while True:
        found = match(text, position)
        if found is None:
            raise _no_token(text, position)
        group = found.lastindex
        assert group is not None
        piece = found[group]
        key = piece.upper() if group == _WORD else piece if group == _SYMBOL else ""
        start, position = found.span(group)
        tokens.append(Token(_KINDS[group], piece, key, start, position))
        if key == ";" or group == _END:
            return position


def _no_token(text: str, position: int) -> Mistake:
    skipped = _SPACE.match(text, position)
    assert skipped is not None
    at = skipped.end()
    rest_of_line = (at, len(text) if "\n" not in text[at:] else text.index("\n", at))
    if text[at] in "'\"":
        if text.startswith('""', at):
            return Mistake("a double-quoted name can't be empty", (at, at + 2))
        return Mistake(f"the {text[at]} that opens here is never closed", rest_of_line)
    if text.startswith("/*", at):
        return Mistake("the comment that opens here is never closed", (at, at + 2))
    return Mistake(f"{text[at]!r} can't stand here", (at, at + 1))
