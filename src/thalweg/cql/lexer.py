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
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)

    @property
    def described(self) -> str:
        if self.kind is Kind.END:
            return "the end of the text"
        return self.text if self.kind in (Kind.STRING, Kind.QUOTED) else f'"{self.text}"'


_RESERVED_WORDS = (
    "ALL AND AS BETWEEN BY CASE CAST CREATE CROSS DISTINCT DROP DSTREAM ELSE END EXCEPT "
    "EXISTS FALSE FROM FULL GROUP HAVING IN INNER INTERSECT IS ISTREAM JOIN LEFT LIKE "
    "LIMIT NATURAL NOT NULL ON OR ORDER OUTER RIGHT RSTREAM SELECT THEN TRUE UNION USING "
    "WHEN WHERE WITH "
)
RESERVED = frozenset(_RESERVED_WORDS.split())

_PATTERN = re.compile(
    r"""
      (?P<space>   (?: \s+ | --[^\n]* | /\*.*?\*/ )+ )
    | (?P<word>    [^\W\d]\w* )
    | (?P<number>  (?: [0-9]+ (?: \.[0-9]* )? | \.[0-9]+ ) (?: [eE][+-]?[0-9]+ )? )
    | (?P<string>  ' [^']* (?: '' [^']* )* ' )
    | (?P<quoted>  " (?! " (?! ")) [^"]* (?: "" [^"]* )* " )
    | (?P<symbol>  <> | <= | >= | != | \|\| | [-+*/%=<>(),.;\[\]{}] )
    """,
    re.VERBOSE | re.DOTALL,
)

_KINDS = {
    "word": Kind.WORD,
    "number": Kind.NUMBER,
    "string": Kind.STRING,
    "quoted": Kind.QUOTED,
    "symbol": Kind.SYMBOL,
}


def tokenize(text: str) -> list[Token]:
    """All tokens, then one of kind END. Raises Mistake where no token can start."""
    tokens: list[Token] = []
    position, size = 0, len(text)
    match = _PATTERN.match
    while position < size:
        found = match(text, position)
        if found is None:
            raise _no_token(text, position)
        end = found.end()
        group = found.lastgroup
        if group != "space":
            assert group is not None
            piece = found.group()
            key = piece.upper() if group == "word" else piece if group == "symbol" else ""
            tokens.append(Token(_KINDS[group], piece, key, position, end))
        position = end
    tokens.append(Token(Kind.END, "", "", size, size))
    return tokens


def _no_token(text: str, at: int) -> Mistake:
    rest_of_line = (at, len(text) if "\n" not in text[at:] else text.index("\n", at))
    if text[at] in "'\"":
        if text.startswith('""', at):
            return Mistake("a double-quoted name can't be empty", (at, at + 2))
        return Mistake(f"the {text[at]} that opens here is never closed", rest_of_line)
    if text.startswith("/*", at):
        return Mistake("the comment that opens here is never closed", (at, at + 2))
    return Mistake(f"{text[at]!r} can't stand here", (at, at + 1))
