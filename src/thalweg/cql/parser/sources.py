"""The FROM clause: streams with windows and aliases, sub-queries, joins."""

from __future__ import annotations

from abc import abstractmethod
from decimal import Decimal

from thalweg.cql.errors import Mistake, window_help
from thalweg.cql.lexer import RESERVED, Kind
from thalweg.cql.parser.primaries import PrimaryParser
from thalweg.cql.syntax import (
    ColumnRef,
    Duration,
    FromItem,
    HopWindow,
    JoinRef,
    Name,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    SubqueryRef,
    TableRef,
    Tolerance,
    Window,
)

_REFUSED_JOINS = {
    "RIGHT": "swap the two sides and write LEFT JOIN",
    "FULL": "write LEFT JOIN, or the UNION of two",
    "NATURAL": "write JOIN … ON with the columns",
}


class SourceParser(PrimaryParser):
    @abstractmethod
    def alias(self) -> Name | None: ...

    def sources(self) -> tuple[FromItem, ...]:
        items = [self._joined()]
        while self.accept(","):
            items.append(self._joined())
        return tuple(items)

    def _joined(self) -> FromItem:
        start = self.token.start
        left = self._source()
        chain = 0
        while True:
            self.check_chain(chain := chain + 1)
            if self.accept("CROSS"):
                self.expect("JOIN", "after CROSS")
                left = JoinRef(left, self._source(), None, span=self.since(start))
            elif self.at("LEFT"):
                self.advance()
                self.accept("OUTER")
                self.expect("JOIN", "after LEFT")
                left = self._on(left, start, is_left=True)
            elif self.at("JOIN") or self.at("INNER"):
                self.accept("INNER")
                self.expect("JOIN", "after INNER")
                left = self._on(left, start, is_left=False)
            else:
                self._refuse_join()
                return left

    def _on(self, left: FromItem, start: int, is_left: bool) -> JoinRef:
        right = self._source()
        if self.at("USING"):
            advice = "write ON with the equality of the columns"
            raise Mistake("JOIN … USING is not part of the language", self.token.span, advice)
        if not self.accept("ON"):
            hint = None if is_left else "write CROSS JOIN for a join without a condition"
            raise self.unexpected("ON", "after JOIN", hint)
        return JoinRef(left, right, self.expression(), is_left, self.since(start))

    def _refuse_join(self) -> None:
        hint = _REFUSED_JOINS.get(self.token.key)
        if hint is not None:
            message = f"{self.token.key} JOIN is not part of the language"
            raise Mistake(message, self.token.span, hint)

    def _source(self) -> FromItem:
        start = self.token.start
        if not self.at("("):
            name = self.name("a stream, relation or view")
            if self.at("("):
                hint = window_help(name.text)
                raise Mistake(f"a function can't stand in FROM: {name.text}", name.span, hint)
            window = self._window() if self.at("[") else None
            with_position, tolerance = self._with_position(), self._tolerance()
            alias = self._alias()
            return TableRef(name, window, alias, self.since(start), with_position, tolerance)
        if not self.at_query():
            self.expect("(")
            self.enter()
            item = self._joined()
            self.leave()
            self.expect(")")
            return item
        self.expect("(")
        query = self.query()
        self.expect(")", "to close the sub-query")
        window = self._window() if self.at("[") else None
        tolerance = self._tolerance()
        alias = self._alias()
        return SubqueryRef(query, window, alias, self.since(start), tolerance)

    def _with_position(self) -> bool:
        """WITH POSITION: two more columns, which tell in which order tuples came."""
        if not self.accept("WITH"):
            return False
        if not self.accept("POSITION"):
            raise self.unexpected("POSITION", "after WITH")
        return True

    def _tolerance(self) -> Tolerance | None:
        start = self.token.start
        if not self._is_tolerance():
            return None
        self.advance()
        column, is_percent = (self.column() if self.is_name() else None), False
        if column is None:
            amount = self.duration("a number of UPDATES, or a time such as 2 seconds")
        else:
            begin = self.token.start
            number = self.number("how far the value may be off, such as 0.05 or 1 PERCENT")
            amount = Duration(number, None, self.since(begin), self.since(begin))
            is_percent = self.accept("PERCENT")
        per = self._tolerance_keys() if self.accept("PER") else ()
        return Tolerance(column, amount, is_percent, per, self.since(start))

    def _is_tolerance(self) -> bool:
        """Whether the word is what it seems: behind an alias of this name nothing such follows."""
        if not self.at("TOLERANCE"):
            return False
        after = self.peek()
        is_word = after.kind is Kind.WORD and after.key not in RESERVED
        return is_word or after.kind in (Kind.NUMBER, Kind.QUOTED) or after.key == "-"

    def _tolerance_keys(self) -> tuple[ColumnRef, ...]:
        """One column, or several in parentheses: behind a comma the next source begins."""
        if not self.accept("("):
            return (self.column(),)
        keys = [self.column()]
        while self.accept(","):
            keys.append(self.column())
        self.expect(")", "to close PER")
        return tuple(keys)

    def _alias(self) -> Name | None:
        found = self.alias()
        if found is not None and self.at("["):
            hint = f"write the stream, its window, then the alias: S [Range 5 min] {found.text}"
            raise Mistake("a window stands before the alias", self.token.span, hint)
        if found is not None and self._is_tolerance():
            hint = "write the stream, its window, TOLERANCE, then the alias"
            raise Mistake("TOLERANCE stands before the alias", self.token.span, hint)
        return found

    # --- windows --------------------------------------------------------------------------------

    def _window(self) -> Window:
        start = self.expect("[").start
        if self.at("ROWS") or self.at("PARTITION"):
            return self._rows(start)
        if self.at("TUMBLE") or self.at("HOP"):
            return self._hop(start)
        if self.accept("SESSION"):
            return self._session(start)
        length = self._length()
        slide = self.duration("a slide") if self.accept("SLIDE") else None
        self.expect("]", "to close the window")
        return RangeWindow(length, slide, self.since(start))

    def _length(self) -> Duration | None:
        token = self.token
        if self.accept("NOW"):
            return Duration(Decimal(0), None, token.span, token.span)
        if self.accept("UNBOUNDED"):
            return None
        if not self.accept("RANGE"):
            hint = self.misspelt_keyword() or "[Range 5 minutes], [Tumble 1 minute], [Rows 10]"
            kinds = "Now, Range, Unbounded, Tumble, Hop, Session, Rows or Partition By"
            raise self.unexpected(kinds, hint=hint)
        return None if self.accept("UNBOUNDED") else self.duration("a length such as 5 minutes")

    def _hop(self, start: int) -> HopWindow:
        kind = self.advance()
        length = self.duration("a length such as 1 minute")
        if self.at("SLIDE") or (kind.key == "TUMBLE" and self.at("EVERY")):
            hint = "write [Hop 1 minute EVERY 10 seconds]"
            raise Mistake(
                f"a {kind.text} window does not take {self.token.text}", self.token.span, hint
            )
        every = None
        if kind.key == "HOP":
            if not self.accept("EVERY"):
                hint = "[Hop 1 minute EVERY 10 seconds]; [Tumble 1 minute] hops by its own length"
                raise self.unexpected("EVERY", "after a Hop window's length", hint)
            every = self.duration("a hop such as 10 seconds")
        self.expect("]", "to close the window")
        return HopWindow(length, every, self.since(start))

    def _session(self, start: int) -> SessionWindow:
        gap = self.duration("a gap such as 5 minutes")
        keys = self._partition_keys() if self.accept("PARTITION") else ()
        self.expect("]", "to close the window")
        return SessionWindow(gap, keys, self.since(start))

    def _rows(self, start: int) -> RowsWindow:
        keys = self._partition_keys() if self.accept("PARTITION") else ()
        self.expect("ROWS")
        count = self.duration("a number of rows")
        slide = self.duration("a number of rows") if self.accept("SLIDE") else None
        self.expect("]", "to close the window")
        return RowsWindow(count, slide, keys, self.since(start))

    def _partition_keys(self) -> tuple[ColumnRef, ...]:
        self.expect("BY", "after PARTITION")
        keys = [self.column()]
        while self.accept(","):
            keys.append(self.column())
        return tuple(keys)
