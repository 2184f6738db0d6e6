"""CREATE TABLE, INSERT INTO and DELETE FROM."""

from __future__ import annotations

from typing import Any

from thalweg.cql.errors import Mistake
from thalweg.cql.lexer import Kind
from thalweg.cql.parser.queries import QueryParser
from thalweg.cql.parser.types import parse_type
from thalweg.cql.syntax import ColumnDef, CreateTable, Delete, Expr, Insert, Mode, Name

_NOT_OF_TABLES = {
    "TIMESTAMP": "a table's rows have no timestamps: they hold from the moment they come in",
    "LATENESS": "a table's changes are never late",
    "IDLE": "a query does not wait for a table",
}


class TableParser(QueryParser):
    def table(self, start: int, mode: Mode) -> CreateTable:
        name = self.name("a name for the table")
        columns, key = self._table_columns()
        clauses: dict[str, Any] = {}
        while self.token.kind is Kind.WORD and not self.is_last:
            token = self.token
            if token.key in _NOT_OF_TABLES:
                raise Mistake(f"a table has no {token.key}", token.span, _NOT_OF_TABLES[token.key])
            clause = self._table_clause()
            if clause is None:
                break
            if clauses.keys() & clause.keys():
                raise Mistake(f"{token.key} is given twice", token.span)
            clauses |= clause
        return CreateTable(name, columns, key, mode=mode, span=self.since(start), **clauses)

    def _table_clause(self) -> dict[str, Any] | None:
        if self.accept("FROM"):
            return {"source": self.string("a file in single quotes")}
        if self.accept("REFRESH"):
            self.accept("EVERY")
            return {"refresh": self.duration("a length such as 1 minute")}
        if self.accept("RESOLUTION"):
            return {"resolution": self.duration("a length such as 1 second")}
        if self.accept("OPTIONS"):
            return self.options_clause()
        return None

    def options_clause(self) -> dict[str, Any]:
        raise NotImplementedError  # of the statements' parser, which streams have too

    def _table_columns(self) -> tuple[tuple[ColumnDef, ...], tuple[Name, ...]]:
        """`(id INTEGER, name VARCHAR, PRIMARY KEY (id))`, or `(id INTEGER PRIMARY KEY, …)`."""
        self.expect("(", "and the columns")
        columns: list[ColumnDef] = []
        keys: list[tuple[Name, ...]] = []
        while True:
            begin = self.token
            if self.at("PRIMARY") and self.peek().key == "KEY":
                self._primary_key()
                keys.append(self.names("a column of the key"))
            else:
                name = self.name("a column name")
                columns.append(ColumnDef(name, parse_type(self)))
                if self.at("PRIMARY"):
                    self._primary_key()
                    keys.append((name,))
            if len(keys) > 1:
                hint = "PRIMARY KEY (a, b) is a key of two columns"
                raise Mistake("PRIMARY KEY is given twice", begin.span, hint)
            if not self.accept(","):
                break
        self.expect(")", "after the columns")
        return tuple(columns), keys[0] if keys else ()

    def _primary_key(self) -> None:
        self.advance()
        self.expect("KEY", "after PRIMARY")

    # --- rows

    def insert(self, start: int) -> Insert:
        self.expect("INTO", "after INSERT")
        name = self.name("a stream or table")
        columns = self.names("a column") if self.at("(") else ()
        if self.at_query():
            hint = "a standing query writes to a sink; INSERT takes VALUES"
            raise Mistake("INSERT can't take the rows of a query", self.token.span, hint)
        self.expect("VALUES", f"after INSERT INTO {name.text}")
        rows = [self._row()]
        while self.accept(","):
            rows.append(self._row())
        return Insert(name, columns, tuple(rows), self.since(start))

    def _row(self) -> tuple[Expr, ...]:
        self.expect("(", "before the values of a row")
        values = self.expressions()
        self.expect(")", "after the values of a row")
        return values

    def delete(self, start: int) -> Delete:
        self.expect("FROM", "after DELETE")
        name = self.name("a table")
        where = self.expression() if self.accept("WHERE") else None
        return Delete(name, where, self.since(start))
