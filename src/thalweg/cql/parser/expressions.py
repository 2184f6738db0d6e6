"""Expressions, by precedence climbing.

From loose to tight: OR, AND, NOT, comparisons (with IS, IN, LIKE, BETWEEN), + - ||, * / %, sign.
"""

from __future__ import annotations

from thalweg.cql.errors import Mistake
from thalweg.cql.lexer import RESERVED
from thalweg.cql.parser.cursor import MAX_DEPTH
from thalweg.cql.parser.primaries import PrimaryParser
from thalweg.cql.syntax import (
    Arithmetic,
    Between,
    Comparison,
    Expr,
    InList,
    InQuery,
    IsNull,
    Like,
    Logical,
    Not,
)

COMPARISONS = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_PREDICATE_WORDS = {"IS", "IN", "LIKE", "BETWEEN", "NOT"}


class ExpressionParser(PrimaryParser):
    def expression(self) -> Expr:
        self.enter()
        expr = self._or()
        self.leave()
        return expr

    def _or(self) -> Expr:
        start = self.token.start
        args = [self._and()]
        while self.accept("OR"):
            args.append(self._and())
        return args[0] if len(args) == 1 else Logical("or", tuple(args), self.since(start))

    def _and(self) -> Expr:
        start = self.token.start
        args = [self._not()]
        while self.accept("AND"):
            args.append(self._not())
        return args[0] if len(args) == 1 else Logical("and", tuple(args), self.since(start))

    def _not(self) -> Expr:
        start = self.token.start
        if self.token.key != "NOT":
            return self._predicate()
        self.advance()
        self.enter()
        arg = self._not()
        self.leave()
        return Not(arg, self.since(start))

    def _predicate(self) -> Expr:
        start = self.token.start
        if self.at("(") and self._is_row():
            return self._row_in(start)
        expr = self.operand()
        if self.token.key in COMPARISONS:
            expr = self._comparison(expr, start)
        chain = 0
        while self.token.key in _PREDICATE_WORDS:
            self.check_chain(chain := chain + 1)
            expr = self._word_predicate(expr, start)
        return expr

    def _comparison(self, first: Expr, start: int) -> Expr:
        steps: list[tuple[str, Expr]] = []
        while self.token.key in COMPARISONS:
            token = self.advance()
            operator = COMPARISONS[token.key]
            if steps and (operator != "=" or steps[-1][0] != "="):
                hint = "write the two comparisons with AND between them"
                raise Mistake("only = can be chained", token.span, hint)
            steps.append((operator, self.operand()))
        return Comparison(first, tuple(steps), self.since(start))

    def _word_predicate(self, arg: Expr, start: int) -> Expr:
        if self.accept("IS"):
            negated = self.accept("NOT")
            self.expect("NULL", "after IS")
            return IsNull(arg, negated, self.since(start))
        negated = self.accept("NOT")
        if self.accept("LIKE"):
            return Like(arg, self.operand(), negated, self.since(start))
        if self.accept("BETWEEN"):
            low = self.operand()
            self.expect("AND", "between the bounds of BETWEEN")
            return Between(arg, low, self.operand(), negated, self.since(start))
        self.expect("IN", "or LIKE or BETWEEN after NOT" if negated else "")
        return self._in((arg,), negated, start)

    def _in(self, args: tuple[Expr, ...], negated: bool, start: int) -> Expr:
        self.expect("(", "after IN")
        if self.at_query():
            query = self.query()
            self.expect(")")
            return InQuery(args, query, negated, self.since(start))
        if len(args) > 1:
            raise self.unexpected("a sub-query", "after (…, …) IN (")
        items = self.expressions()
        self.expect(")")
        return InList(args[0], items, negated, self.since(start))

    def _is_row(self) -> bool:
        """Whether a parenthesis opens `(x, y) IN`: a comma before it closes, outside of others."""
        level = 0
        for index in range(self._at, len(self._tokens)):
            token = self._tokens[index]
            if token.key in ("(", "["):
                level += 1
            elif token.key in (")", "]"):
                level -= 1
            elif level == 1 and (token.key == "," or token.key in ("SELECT", "WITH")):
                return token.key == ","
            if level == 0 or level > MAX_DEPTH:
                return False
        return False

    def _row_in(self, start: int) -> Expr:
        self.expect("(")
        args = self.expressions()
        self.expect(")")
        negated = self.accept("NOT")
        self.expect("IN", "after a list of expressions")
        return self._in(args, negated, start)

    def operand(self) -> Expr:
        start = self.token.start
        left = self._product()
        chain = 0
        while self.token.key in ("+", "-", "||"):
            self.check_chain(chain := chain + 1)
            operator = self.advance().key
            left = Arithmetic(operator, left, self._product(), self.since(start))
        return left

    def _product(self) -> Expr:
        start = self.token.start
        left = self.primary()
        chain = 0
        while self.token.key in ("*", "/", "%"):
            self.check_chain(chain := chain + 1)
            operator = self.advance().key
            left = Arithmetic(operator, left, self.primary(), self.since(start))
        return left


assert _PREDICATE_WORDS <= RESERVED  # else `x is` could be a column with an alias
