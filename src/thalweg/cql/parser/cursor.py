"""A place in the list of tokens, and the small moves that the grammar is made of."""

from __future__ import annotations

from decimal import Decimal

from thalweg.cql.errors import Mistake, Span, closest
from thalweg.cql.lexer import RESERVED, Kind, Token
from thalweg.cql.syntax import Duration, Name
from thalweg.cql.units import parse_amount

# Deeper texts would meet Python's own limit in some walk over the tree; nobody writes them by hand.
MAX_DEPTH = 40
MAX_CHAIN = 100

_CLAUSE_WORDS = (
    *("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "UNION", "EXCEPT", "INTERSECT", "DISTINCT"),
    *("JOIN", "ISTREAM", "DSTREAM", "RSTREAM", "BETWEEN", "LIKE", "CREATE", "DROP", "TIMESTAMP"),
    *("RESOLUTION", "LATENESS", "RETAIN", "OPTIONS", "RANGE", "ROWS", "UNBOUNDED", "PARTITION"),
    *("SLIDE", "TUMBLE", "SESSION", "EVERY", "TOLERANCE"),
)
# Behind a length without a unit: clauses that go on, and no unit of time.
_AFTER_A_LENGTH = frozenset(
    ("SLIDE", "EVERY", "PARTITION", "PER", "RESOLUTION", "LATENESS", "IDLE", "RETAIN", "OPTIONS")
)


class Cursor:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self.token = tokens[0]

    def advance(self) -> Token:
        token = self.token
        if not self.is_last:
            self._at += 1
            self.token = self._tokens[self._at]
        return token

    @property
    def is_last(self) -> bool:
        """Whether the statement's tokens are used up, but for the semicolon or the end."""
        return self._at == len(self._tokens) - 1

    def peek(self, ahead: int = 1) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    @property
    def previous(self) -> Token:
        return self._tokens[max(self._at - 1, 0)]

    def since(self, start: int) -> Span:
        """From an offset to the end of the last token taken."""
        return start, max(start, self.previous.end)

    def at(self, key: str) -> bool:
        return self.token.key == key

    def accept(self, key: str) -> bool:
        if self.token.key != key:
            return False
        self._at += 1  # never from the last token: nothing accepts a semicolon
        self.token = self._tokens[self._at]
        return True

    def expect(self, key: str, where: str = "") -> Token:
        if self.token.key != key:
            raise self.unexpected(f'"{key}"' if not key.isalpha() else key, where)
        return self.advance()

    def unexpected(self, wanted: str, where: str = "", hint: str | None = None) -> Mistake:
        context = f" {where}" if where else ""
        message = f"expected {wanted}{context}, found {self.token.described}"
        return Mistake(message, self.token.span, hint or self.misspelt_keyword())

    def misspelt_keyword(self) -> str | None:
        """A word right here that is nearly a keyword; just before, it was taken for an alias."""
        for token in (self.token, self.previous):
            if token.kind is Kind.WORD and token.key not in (*RESERVED, *_CLAUSE_WORDS):
                near = closest(token.text, _CLAUSE_WORDS, cutoff=0.75)
                if near is not None:
                    return f'is "{token.text}" a misspelt {near}?'
        return None

    def is_name(self) -> bool:
        kind = self.token.kind
        return kind is Kind.QUOTED or (kind is Kind.WORD and self.token.key not in RESERVED)

    def name(self, what: str) -> Name:
        token = self.token
        if not self.is_name():
            hint = None
            if token.key in RESERVED:
                hint = f'{token.key} is a reserved word; write "{token.text}" in double quotes'
            raise self.unexpected(what, hint=hint)
        self.advance()
        return Name(token.value if token.kind is Kind.QUOTED else token.text, token.span)

    def names(self, what: str) -> tuple[Name, ...]:
        """`(a, b, …)`"""
        self.expect("(")
        found = [self.name(what)]
        while self.accept(","):
            found.append(self.name(what))
        self.expect(")")
        return tuple(found)

    def string(self, what: str) -> str:
        if self.token.kind is not Kind.STRING:
            raise self.unexpected(what)
        return self.advance().value

    def number(self, what: str) -> Decimal:
        """A number with an optional minus; whether it makes sense is the binder's affair."""
        start = self.token.start
        minus = "-" if self.accept("-") else ""
        if self.token.kind is not Kind.NUMBER:
            raise self.unexpected(what)
        digits = self.advance().text
        return parse_amount(minus + digits, self.since(start))

    def duration(self, what: str) -> Duration:
        """`n unit`, or `n` alone."""
        start = self.token.start
        amount = self.number(what)
        unit = self.token
        if unit.kind is Kind.WORD and unit.key not in RESERVED | _AFTER_A_LENGTH:
            self.advance()
            return Duration(amount, unit.text, self.since(start), unit.span)
        return Duration(amount, None, self.since(start), self.since(start))

    def enter(self) -> None:
        """One level deeper; `leave` on the way out."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Mistake(f"nested more than {MAX_DEPTH} levels deep", self.token.span)

    def leave(self) -> None:
        self._depth -= 1

    def check_chain(self, length: int) -> None:
        if length > MAX_CHAIN:
            raise Mistake(f"more than {MAX_CHAIN} operators in one chain", self.token.span)
