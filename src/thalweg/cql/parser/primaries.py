"""The operands of expressions: columns, constants, calls, CASE, CAST and parentheses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from thalweg.cql.errors import Mistake
from thalweg.cql.lexer import RESERVED, Kind
from thalweg.cql.parser.cursor import Cursor
from thalweg.cql.parser.literals import interval, number, temporal
from thalweg.cql.parser.types import parse_type
from thalweg.cql.syntax import (
    CaseWhen,
    CastTo,
    ColumnRef,
    Exists,
    Expr,
    FunctionCall,
    IntervalLiteral,
    Literal,
    Negation,
    Query,
    ScalarQuery,
)
from thalweg.plan.types import BOOLEAN, NULL, VARCHAR

_CONSTANTS = {"TRUE": (True, BOOLEAN), "FALSE": (False, BOOLEAN), "NULL": (None, NULL)}


class PrimaryParser(Cursor, ABC):
    @abstractmethod
    def expression(self) -> Expr: ...

    @abstractmethod
    def operand(self) -> Expr:
        """An expression without comparisons or logic outside of parentheses."""

    @abstractmethod
    def query(self) -> Query: ...

    @abstractmethod
    def at_query(self) -> bool: ...

    def expressions(self) -> tuple[Expr, ...]:
        found = [self.expression()]
        while self.accept(","):
            found.append(self.expression())
        return tuple(found)

    def primary(self) -> Expr:
        token = self.token
        if token.kind is Kind.WORD:
            return self._reserved() if token.key in RESERVED else self._word()
        if token.kind is Kind.NUMBER:
            self.advance()
            return number(token.text, token.span)
        if token.kind is Kind.STRING:
            self.advance()
            return Literal(token.value, VARCHAR, token.span)
        if token.kind is Kind.QUOTED:
            return self.column()
        if token.key in ("-", "+"):
            return self._signed()
        if token.key == "(":
            return self._parenthesised()
        raise self.unexpected("an expression")

    def _signed(self) -> Expr:
        sign = self.advance()
        if sign.key == "-" and self.token.kind is Kind.NUMBER:
            digits = self.advance()
            return number("-" + digits.text, self.since(sign.start))
        self.enter()
        arg = self.primary()
        self.leave()
        return arg if sign.key == "+" else Negation(arg, self.since(sign.start))

    def _parenthesised(self) -> Expr:
        opening = self.advance()
        if self.at_query():
            query = self.query()
            self.expect(")", "to close the sub-query")
            return ScalarQuery(query, self.since(opening.start))
        expr = self.expression()
        self.expect(")")
        return expr

    def _word(self) -> Expr:
        """A column, a call, or a typed constant such as DATE '2024-02-29'."""
        token, following = self.token, self.peek()
        if following.key == "(":
            return self._call()
        if following.kind is Kind.STRING and token.key in ("DATE", "TIMESTAMP"):
            self.advance()
            self.advance()
            return temporal(token.key, following.value, self.since(token.start))
        if token.key == "INTERVAL" and (
            following.kind in (Kind.STRING, Kind.NUMBER) or following.key == "-"
        ):
            return self._interval()
        return self.column()

    def _interval(self) -> IntervalLiteral:
        start = self.advance().start
        sign = "-" if self.accept("-") else ""
        amount = self.advance()
        if amount.kind not in (Kind.STRING, Kind.NUMBER):
            raise Mistake("expected a number after INTERVAL", amount.span)
        text = amount.value if amount.kind is Kind.STRING else amount.text
        unit = self.advance()
        if unit.kind is not Kind.WORD or unit.key in RESERVED:
            hint = "INTERVAL '3' HOUR"
            raise Mistake("expected a unit of time after INTERVAL", unit.span, hint)
        return interval(sign + text, amount.span, unit.text, unit.span, self.since(start))

    def column(self) -> ColumnRef:
        token = self.token
        first = self.name("a column")
        if not self.at("."):
            return ColumnRef(first.text, None, token.kind is Kind.QUOTED, token.span)
        self.advance()
        second = self.name("a column")
        return ColumnRef(second.text, first.text, False, self.since(token.start))

    def _reserved(self) -> Expr:
        token = self.token
        if token.key in _CONSTANTS:
            self.advance()
            value, type_ = _CONSTANTS[token.key]
            return Literal(value, type_, token.span)
        if token.key == "CASE":
            return self._case()
        if token.key == "CAST":
            return self._cast()
        if token.key == "EXISTS":
            return self._exists()
        if token.key == "NOT":
            raise self.unexpected("an expression", hint="put parentheses round NOT …")
        raise self.unexpected("an expression")

    def _exists(self) -> Exists:
        start = self.advance().start
        self.expect("(", "after EXISTS")
        query = self.query()
        self.expect(")")
        return Exists(query, self.since(start))

    def _cast(self) -> CastTo:
        start = self.advance().start
        self.expect("(", "after CAST")
        arg = self.expression()
        self.expect("AS", "in CAST")
        target = parse_type(self)
        self.expect(")")
        return CastTo(arg, target, self.since(start))

    def _case(self) -> CaseWhen:
        start = self.advance().start
        operand = None if self.at("WHEN") else self.expression()
        branches: list[tuple[Expr, Expr]] = []
        while self.accept("WHEN"):
            condition = self.expression()
            self.expect("THEN", "after WHEN …")
            branches.append((condition, self.expression()))
        if not branches:
            raise self.unexpected("WHEN", "in CASE")
        otherwise = self.expression() if self.accept("ELSE") else None
        self.expect("END", "to close CASE")
        return CaseWhen(operand, tuple(branches), otherwise, self.since(start))

    # --- calls ----------------------------------------------------------------------------------

    def _call(self) -> FunctionCall:
        token = self.advance()
        self.expect("(")
        special = _SPECIAL_CALLS.get(token.key)
        if special is not None:
            args = special(self)
            self.expect(")")
            return FunctionCall(
                token.text.lower(), args, span=self.since(token.start), name_span=token.span
            )
        star = self.accept("*")
        distinct = not star and self.accept("DISTINCT")
        args = () if star or (self.at(")") and not distinct) else self.expressions()
        self.expect(")", f"to close {token.text}(")
        only = self._filter()
        return FunctionCall(
            token.text.lower(), args, distinct, star, only, self.since(token.start), token.span
        )

    def _filter(self) -> Expr | None:
        """FILTER (WHERE …); the word alone may be an alias."""
        if not (self.at("FILTER") and self.peek().key == "("):
            return None
        self.advance()
        self.expect("(")
        self.expect("WHERE", "after FILTER (")
        only = self.expression()
        self.expect(")", "to close FILTER (")
        return only

    def extract_args(self) -> tuple[Expr, ...]:
        """EXTRACT(part FROM x)"""
        part = self.name("a part such as HOUR")
        self.expect("FROM", "in EXTRACT")
        return Literal(part.text.lower(), VARCHAR, part.span), self.expression()

    def substring_args(self) -> tuple[Expr, ...]:
        """SUBSTRING(x FROM a [FOR b]) or SUBSTRING(x, a [, b])"""
        args = [self.expression()]
        if self.accept("FROM"):
            args.append(self.expression())
            if self.accept("FOR"):
                args.append(self.expression())
            return tuple(args)
        while self.accept(","):
            args.append(self.expression())
        return tuple(args)

    def position_args(self) -> tuple[Expr, ...]:
        """POSITION(a IN b) or POSITION(a, b); IN is no operator here."""
        needle = self.operand()
        if not self.accept(","):
            self.expect("IN", "in POSITION")
        return needle, self.expression()


_SPECIAL_CALLS: dict[str, Callable[[PrimaryParser], tuple[Expr, ...]]] = {
    "EXTRACT": PrimaryParser.extract_args,
    "SUBSTRING": PrimaryParser.substring_args,
    "SUBSTR": PrimaryParser.substring_args,
    "POSITION": PrimaryParser.position_args,
}
