"""Tokens to syntax tree: a hand-written recursive-descent parser (docs/decisions/cql-parser.md).

Each module adds one level of the grammar to the one below: cursor, expressions, queries,
statements.
"""

from __future__ import annotations

from thalweg.cql.errors import DEFAULT_NAME, CqlError, Mistake
from thalweg.cql.lexer import split_statements
from thalweg.cql.parser.statements import StatementParser
from thalweg.cql.syntax import Statement


def parse_script(text: str, *, name: str = DEFAULT_NAME) -> tuple[Statement, ...]:
    """All statements of the text. Raises CqlError with every statement's first error."""
    statements, mistakes = parse_each(text)
    if mistakes:
        raise CqlError([m.diagnostic(text) for m in mistakes], text, name)
    return statements


def parse_each(text: str) -> tuple[tuple[Statement, ...], list[Mistake]]:
    """The statements that are right, and the first mistake of each of the others."""
    statements: list[Statement] = []
    mistakes: list[Mistake] = []
    try:
        for tokens in split_statements(text):
            if len(tokens) == 1:
                continue
            try:
                statements.append(StatementParser(tokens).statement())
            except Mistake as mistake:
                mistakes.append(mistake)
    except Mistake as no_token:
        mistakes.append(no_token)
    return tuple(statements), mistakes
