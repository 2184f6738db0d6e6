"""Queries: SELECT, FROM with windows and joins, set operators, WITH, and stream operators."""

from __future__ import annotations

from thalweg.cql.errors import Mistake
from thalweg.cql.lexer import RESERVED, Kind
from thalweg.cql.parser.cursor import MAX_DEPTH
from thalweg.cql.parser.expressions import ExpressionParser
from thalweg.cql.parser.sources import SourceParser
from thalweg.cql.syntax import (
    Definition,
    Expr,
    Name,
    OrderItem,
    Query,
    Select,
    SelectItem,
    SetQuery,
    Star,
    StreamQuery,
    TopQuery,
    WithQuery,
)

MOST_ROWS = 10_000  # that ORDER BY … LIMIT keeps
STREAM_KINDS = ("ISTREAM", "DSTREAM", "RSTREAM")


class QueryParser(SourceParser, ExpressionParser):
    def at_query(self) -> bool:
        """Whether a query starts here, maybe after opening parentheses."""
        ahead = 0
        while self.peek(ahead).key == "(" and ahead <= MAX_DEPTH:
            ahead += 1
        return self.peek(ahead).key in ("SELECT", "WITH", *STREAM_KINDS)

    def query(self) -> Query:
        self.enter()
        found = self._query()
        self.leave()
        return found

    def _query(self) -> Query:
        start = self.token.start
        if self.at("WITH"):
            return self._with()
        if self.token.key in STREAM_KINDS and self.peek().key != "(":
            # The bare prefix takes all that follows: ISTREAM SELECT … UNION SELECT …
            kind = self.advance().key
            inner = self.query()
            return StreamQuery(kind, inner, self.since(start))
        return self._union()

    def _union(self) -> Query:
        """UNION and EXCEPT, from left to right; INTERSECT binds tighter."""
        start = self.token.start
        left = self._intersection()
        chain = 0
        while self.token.key in ("UNION", "EXCEPT"):
            self.check_chain(chain := chain + 1)
            kind = self.advance().key
            every = self._all()
            left = SetQuery(kind, every, left, self._intersection(), self.since(start))
        return self._top(left, start)

    def _intersection(self) -> Query:
        start = self.token.start
        left = self._block()
        chain = 0
        while self.accept("INTERSECT"):
            self.check_chain(chain := chain + 1)
            every = self._all()
            left = SetQuery("INTERSECT", every, left, self._block(), self.since(start))
        return left

    def _all(self) -> bool:
        if self.accept("ALL"):
            return True
        self.accept("DISTINCT")
        return False

    def _block(self) -> Query:
        start = self.token.start
        if self.accept("("):
            inner = self.query()
            self.expect(")", "to close the sub-query")
            return inner
        if self.token.key in STREAM_KINDS:
            kind = self.advance().key
            self.expect("(", f"after {kind}")
            inner = self.query()
            self.expect(")", f"to close {kind}(")
            return StreamQuery(kind, inner, self.since(start))
        return self._select()

    def _with(self) -> WithQuery:
        """WITH a AS (…), b AS (…) SELECT …; COSMOS writes { } and leaves the commas out."""
        start = self.advance().start
        definitions = [self._definition()]
        while self.accept(",") or (self.is_name() and not self.at_query()):
            definitions.append(self._definition())
        body = self.query()
        return WithQuery(tuple(definitions), body, self.since(start))

    def _definition(self) -> Definition:
        name = self.name("a name for a sub-query")
        columns = self.names("a column name") if self.at("(") else ()
        self.expect("AS", f"after WITH {name.text}")
        closing = "}" if self.at("{") else ")"
        if not self.accept("{"):
            self.expect("(", f"after {name.text} AS")
        query = self.query()
        self.expect(closing, f"to close {name.text}")
        return Definition(name, columns, query)

    # --- one block ------------------------------------------------------------------------------

    def _select(self) -> Query:
        start = self.token.start
        self.expect("SELECT")
        # ISTREAM here makes a stream of this block, as in SELECT ISTREAM …
        kind = self.advance().key if self.token.key in STREAM_KINDS else None
        distinct = self.accept("DISTINCT")
        if not distinct:
            self.accept("ALL")
        items = self._items()
        if not self.accept("FROM"):
            hint = "a query reads at least one stream or relation" if self._ends() else None
            raise self.unexpected("FROM", hint=hint)
        sources = self.sources()
        where = self.expression() if self.accept("WHERE") else None
        group_by = self._group_by()
        having = self.expression() if self.accept("HAVING") else None
        select = Select(items, sources, where, group_by, having, distinct, self.since(start))
        if kind is None:
            return select  # ORDER BY belongs to the whole of a UNION
        return StreamQuery(kind, self._top(select, start), self.since(start))

    def _ends(self) -> bool:
        return self.is_last or self.token.key in (")", "}")

    def _items(self) -> tuple[SelectItem | Star, ...]:
        items = [self._item()]
        while self.accept(","):
            items.append(self._item())
        return tuple(items)

    def _item(self) -> SelectItem | Star:
        token = self.token
        if self.accept("*"):
            return Star(None, token.span)
        if self.is_name() and self.peek().key == "." and self.peek(2).key == "*":
            qualifier = self.name("a stream")
            self.advance()
            self.advance()
            return Star(qualifier.text, self.since(token.start))
        return SelectItem(self.expression(), self.alias())

    def alias(self) -> Name | None:
        if self.accept("AS"):
            return self.name("an alias")
        if not self.is_name():
            return None
        if self.previous.kind is Kind.NUMBER and self.previous.end == self.token.start:
            raise Mistake("a number and a name run together", self.token.span)
        return self.name("an alias")

    def _group_by(self) -> tuple[Expr, ...]:
        if not self.accept("GROUP"):
            return ()
        self.expect("BY", "after GROUP")
        return self.expressions()

    # --- ORDER BY … LIMIT n

    def _top(self, query: Query, start: int) -> Query:
        if self.at("LIMIT"):
            hint = "say which rows come first: ORDER BY … LIMIT …"
            raise Mistake("LIMIT needs an ORDER BY", self.token.span, hint)
        if not self.at("ORDER"):
            return query
        begin = self.advance().start
        self.expect("BY", "after ORDER")
        order = [self._order_item()]
        while self.accept(","):
            order.append(self._order_item())
        if not self.accept("LIMIT"):
            hint = "a relation has no order; ORDER BY … LIMIT n keeps its n first rows"
            raise self.unexpected("LIMIT", "after ORDER BY …", hint)
        limit = self._limit()
        if self.at("OFFSET"):
            raise Mistake("there is no OFFSET: a relation keeps its first rows", self.token.span)
        if self.token.key in ("UNION", "EXCEPT", "INTERSECT"):
            hint = "put parentheses round the query with ORDER BY … LIMIT"
            raise Mistake(f"{self.token.key} can't follow LIMIT", self.token.span, hint)
        return TopQuery(query, tuple(order), limit, self.since(start), self.since(begin))

    def _order_item(self) -> OrderItem:
        expr = self.expression()
        descending = self.accept("DESC")
        if not descending:
            self.accept("ASC")
        if not self.accept("NULLS"):
            return OrderItem(expr, descending)
        nulls_last = self.accept("LAST")
        if not nulls_last:
            self.expect("FIRST", "or LAST after NULLS")
        return OrderItem(expr, descending, nulls_last)

    def _limit(self) -> int:
        start = self.token.start
        number = self.number("a number of rows")
        if number < 1 or number % 1 or number > MOST_ROWS:
            message = f"LIMIT takes a whole number of rows from 1 to {MOST_ROWS}"
            raise Mistake(message, self.since(start))
        return int(number)


assert set(STREAM_KINDS) <= RESERVED
