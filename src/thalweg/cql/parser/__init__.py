"""Tokens to syntax tree: a hand-written recursive-descent parser (docs/decisions/cql-parser.md).

Each module adds one level of the grammar to the one below: cursor, expressions, queries,
statements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from thalweg.cql.errors import DEFAULT_NAME, CqlError, Mistake
from thalweg.cql.lexer import Kind, Token, take_statement
from thalweg.cql.parser.statements import StatementParser
from thalweg.cql.syntax import Statement

T = TypeVar("T")
Recalled = tuple[T, int, bool]  # a statement, where the next one begins, whether it is the last


def _nothing(_text: str, _position: int) -> None:
    """Recalls no statement."""


def parse_script(text: str, *, name: str = DEFAULT_NAME) -> tuple[Statement, ...]:
    """All statements of the text. Raises CqlError with every statement's first error."""
    statements, mistakes = parse_each(text)
    if mistakes:
        raise CqlError([m.diagnostic(text) for m in mistakes], text, name)
    return statements


def parse_each(
    text: str, recall: Callable[[str, int], Recalled[T] | None] = _nothing
) -> tuple[tuple[Statement | T, ...], list[Mistake]]:
    """The statements that are right, and the first mistake of each of the others.

    `recall` is asked at the beginning of each statement; what it knows is not parsed.
    """
    statements: list[Statement | T] = []
    mistakes: list[Mistake] = []
    position, is_last = 0, False
    while not is_last:
        known = recall(text, position)
        if known is not None:
            statement, position, is_last = known
            statements.append(statement)
            continue
        # One by one, because the tokens of a long script take many times its own space.
        tokens: list[Token] = []
        try:
            position = take_statement(text, position, tokens)
        except Mistake as no_token:
            mistakes.append(no_token)
            break
        is_last = tokens[-1].kind is Kind.END
        if len(tokens) == 1:
            continue
        try:
            statements.append(StatementParser(tokens).statement())
        except Mistake as mistake:
            mistakes.append(mistake)
    return tuple(statements), mistakes


def parse_at(text: str, position: int) -> Statement:
    """The statement that begins here. Raises Mistake."""
    tokens: list[Token] = []
    take_statement(text, position, tokens)
    return StatementParser(tokens).statement()
