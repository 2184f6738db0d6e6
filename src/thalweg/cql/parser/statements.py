"""Statements: CREATE STREAM, RELATION, VIEW, QUERY and SINK, ALTER, DROP, and bare queries.

Tables are in a file of their own.
"""

from __future__ import annotations

from typing import Any

from thalweg.cql.errors import Mistake
from thalweg.cql.lexer import Kind
from thalweg.cql.parser.tables import TableParser
from thalweg.cql.parser.types import is_type, parse_type
from thalweg.cql.syntax import (
    AddColumn,
    ColumnDef,
    CreateQuery,
    CreateSink,
    CreateStream,
    CreateView,
    Drop,
    Mode,
    Name,
    PlacedQuery,
    SpreadQuery,
    Statement,
)

DEFINABLE = ("STREAM", "RELATION", "TABLE", "VIEW", "QUERY", "SINK")
_WANTED = "STREAM, RELATION, TABLE, VIEW, QUERY or SINK"


class StatementParser(TableParser):
    """For the tokens of one statement."""

    def statement(self) -> Statement:
        found = self._statement()
        if not self.is_last:
            raise self.unexpected('";"', "after the statement")
        return found

    def _statement(self) -> Statement:
        start = self.token.start
        if self.at_query():
            query = self.query()
            return CreateQuery(None, query, span=self.since(start))
        if self.accept("DROP"):
            kind = self._kind("DROP")
            if_exists = self._if_exists()
            return Drop(kind, self.name("a name"), if_exists, self.since(start))
        if self.accept("ALTER"):
            return self._alteration(start)
        if self.accept("INSERT"):
            return self.insert(start)
        if self.accept("DELETE"):
            return self.delete(start)
        if not self.accept("CREATE"):
            raise self.unexpected("CREATE, ALTER, DROP, INSERT, DELETE or a query")
        mode = self._or_replace()
        kind = self._kind("CREATE" if mode is Mode.NEW else "CREATE OR REPLACE")
        mode = self._if_not_exists(mode)
        match kind:
            case "VIEW":
                return self._view(start, mode)
            case "QUERY":
                return self._query_definition(start, mode)
            case "SINK":
                return self._sink(start, mode)
        if mode is Mode.OR_REPLACE:
            hint = "a stream's tuples would be lost: ALTER … ADD COLUMN, or DROP it first"
            raise Mistake(f"a {kind.lower()} can't be replaced", self.previous.span, hint)
        if kind == "TABLE":
            return self.table(start, mode)
        return self._stream(start, mode, is_relation=kind == "RELATION")

    def _or_replace(self) -> Mode:
        if not self.accept("OR"):
            return Mode.NEW
        self.expect("REPLACE", "after CREATE OR")
        return Mode.OR_REPLACE

    def _if_not_exists(self, mode: Mode) -> Mode:
        # A thing may be called "if": only IF NOT is the clause.
        if not (self.at("IF") and self.peek().key == "NOT"):
            return mode
        clause = self.advance()
        self.advance()
        self.expect("EXISTS", "after IF NOT")
        if mode is Mode.OR_REPLACE:
            raise Mistake("OR REPLACE and IF NOT EXISTS exclude each other", clause.span)
        return Mode.IF_NOT_EXISTS

    def _if_exists(self) -> bool:
        if not (self.at("IF") and self.peek().key == "EXISTS"):
            return False
        self.advance()
        self.advance()
        return True

    def _alteration(self, start: int) -> Statement:
        """QUERY name AS …, QUERY name SPREAD OVER nodes, or STREAM name ADD COLUMN name type"""
        if self.accept("QUERY"):
            if self.peek().key == "SPREAD":
                return self._spread(start)
            return self._query_definition(start, Mode.ALTER)
        if self.token.key not in ("STREAM", "RELATION"):
            raise self.unexpected("QUERY, STREAM or RELATION", "after ALTER")
        kind = self.advance().key
        name = self.name(f"the name of the {kind.lower()}")
        self.expect("ADD", f"after the {kind.lower()}'s name")
        self.accept("COLUMN")
        return AddColumn(kind, name, self._column_definition(), self.since(start))

    def _spread(self, start: int) -> SpreadQuery:
        name = self.name("the name of the query")
        self.expect("SPREAD", "after the query's name")
        self.expect("OVER", "and the nodes that compute it")
        nodes = [self.name("a node's name")]
        while self.accept(","):
            nodes.append(self.name("a node's name"))
        return SpreadQuery(name, tuple(nodes), self.since(start))

    def _kind(self, verb: str) -> str:
        if self.token.key not in DEFINABLE:
            raise self.unexpected(_WANTED, f"after {verb}")
        return self.advance().key

    def _view(self, start: int, mode: Mode) -> CreateView:
        name = self.name("a name for the view")
        columns = self.names("a column name") if self.at("(") else ()
        self.expect("AS", "after the view's name")
        query = self.query()
        return CreateView(name, columns, query, mode, self.since(start))

    def _query_definition(self, start: int, mode: Mode) -> CreateQuery:
        name = self.name("a name for the query")
        from_now = self.accept("FROM")
        if from_now:
            self.expect("NOW", "after FROM")
        if self.at("PLACED"):
            return CreateQuery(name, self._placed(), from_now, mode, self.since(start))
        self.expect("AS", "before the query's text")
        query = self.query()
        return CreateQuery(name, query, from_now, mode, self.since(start))

    def _placed(self) -> PlacedQuery:
        """PLACED 'plan' OVER (names), and behind AS what a user has written"""
        start = self.advance().start
        plan = self.string("a plan in single quotes")
        self.expect("OVER", "and the streams that the plan reads")
        over = self.names("a stream's name")
        query = self.query() if self.accept("AS") else None
        return PlacedQuery(plan, over, query, self.since(start))

    def _sink(self, start: int, mode: Mode) -> CreateSink:
        name = self.name("a name for the sink")
        self.expect("FROM", "and the query whose rows are written")
        query = self.name("the query whose rows are written")
        self.expect("INTO", "and where they are written to")
        target = self.string("a target in single quotes, such as 'parquet:out'")
        options = self.options_clause()["options"] if self.accept("OPTIONS") else ()
        return CreateSink(name, query, target, options, mode, self.since(start))

    # --- CREATE STREAM and CREATE RELATION --------------------------------------------------------

    def _stream(self, start: int, mode: Mode, is_relation: bool) -> CreateStream:
        name = self.name("a name for the relation" if is_relation else "a name for the stream")
        columns = self._columns()
        clauses: dict[str, Any] = {}
        while self.token.kind is Kind.WORD and self.token.key in _CLAUSES:
            token = self.advance()
            found = _CLAUSES[token.key](self)
            if clauses.keys() & found.keys():
                raise Mistake(f"{token.key} is given twice", token.span)
            clauses |= found
        if "timestamp" not in clauses:
            raise self.unexpected("TIMESTAMP BY", "and the column that stamps each tuple")
        span = self.since(start)
        return CreateStream(name, columns, is_relation=is_relation, mode=mode, span=span, **clauses)

    def _columns(self) -> tuple[ColumnDef, ...]:
        self.expect("(", "and the columns")
        columns = [self._column_definition()]
        while self.accept(","):
            columns.append(self._column_definition())
        self.expect(")", "after the columns")
        return tuple(columns)

    def _column_definition(self) -> ColumnDef:
        name = self.name("a column name")
        type_ = parse_type(self)
        wide = self.token.span
        return ColumnDef(name, type_, wide if self.accept("WIDE") else None)

    def timestamp_clause(self) -> dict[str, Any]:
        self.expect("BY", "after TIMESTAMP")
        column = self.name("the column that stamps each tuple")
        at_clause = self.at("TIMESTAMP") and self.peek().key == "BY"
        explicit = parse_type(self) if is_type(self.token.key) and not at_clause else None
        return {"timestamp": column, "timestamp_type": explicit}

    def resolution_clause(self) -> dict[str, Any]:
        return {"resolution": self.duration("a length such as 1 second")}

    def lateness_clause(self) -> dict[str, Any]:
        return {"lateness": self.duration("a length such as 10 seconds")}

    def idle_clause(self) -> dict[str, Any]:
        return {"idle": self.duration("a length such as 30 seconds")}

    def retain_clause(self) -> dict[str, Any]:
        return {"retain": self.duration("a length such as 1 hour")}

    def from_clause(self) -> dict[str, Any]:
        return {"source": self.string("a source in single quotes")}

    def options_clause(self) -> dict[str, Any]:
        """OPTIONS (key 'value', …) or (key = 'value', …)"""
        self.expect("(", "after OPTIONS")
        options = [self._option()]
        while self.accept(","):
            options.append(self._option())
        self.expect(")", "after the options")
        return {"options": tuple(options)}

    def _option(self) -> tuple[Name, str]:
        # No keyword can stand here: `limit` and `kafka.acks` need no quotes.
        word = self.token
        if word.kind is Kind.WORD:
            text = self.advance().text
            while self.accept("."):
                if self.token.kind is not Kind.WORD:
                    raise self.unexpected("the rest of the option's name")
                text += f".{self.advance().text}"
            key = Name(text, self.since(word.start))
        else:
            key = self.name("an option's name")
        self.accept("=")
        return key, self.string("the option's value in single quotes")


_CLAUSES = {
    "TIMESTAMP": StatementParser.timestamp_clause,
    "RESOLUTION": StatementParser.resolution_clause,
    "LATENESS": StatementParser.lateness_clause,
    "IDLE": StatementParser.idle_clause,
    "RETAIN": StatementParser.retain_clause,
    "FROM": StatementParser.from_clause,
    "OPTIONS": StatementParser.options_clause,
}
