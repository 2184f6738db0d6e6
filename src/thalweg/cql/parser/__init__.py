"""Tokens to syntax tree: a hand-written recursive-descent parser (docs/decisions/cql-parser.md).

Each module adds one level of the grammar to the one below: cursor, expressions, queries,
statements.
"""

from __future__ import annotations

from thalweg.cql.errors import DEFAULT_NAME, CqlError, Mistake
from thalweg.cql.lexer import tokenize
from thalweg.cql.parser.statements import StatementParser
from thalweg.cql.syntax import Statement


def parse_script(text: str, *, name: str = DEFAULT_NAME) -> tuple[Statement, ...]:
    """All statements of the text. Raises CqlError with every statement's first error."""
    try:
        parser = StatementParser(tokenize(text))
    except Mistake as mistake:
        raise CqlError([mistake.diagnostic(text)], text, name) from None
    statements: list[Statement] = []
    mistakes: list[Mistake] = []
    while parser.skip_semicolons():
        try:
            statements.append(parser.statement())
        except Mistake as mistake:
            mistakes.append(mistake)
            parser.skip_statement()
    if mistakes:
        raise CqlError([m.diagnostic(text) for m in mistakes], text, name)
    return tuple(statements)
