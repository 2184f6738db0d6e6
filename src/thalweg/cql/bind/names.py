"""Names of result columns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from thalweg.cql.errors import Mistake, Span
from thalweg.cql.lexer import RESERVED, Kind, tokenize
from thalweg.plan.expr import Expr


@dataclass(frozen=True, slots=True)
class Output:
    """One result column: `qualifier` is the alias of its stream, for plain columns."""

    expr: Expr
    name: str
    span: Span
    qualifier: str | None = None
    is_alias: bool = False


def unique_names(outputs: list[Output]) -> tuple[str, ...]:
    """Columns of one name are told apart by their stream's alias, then by a number."""
    times = Counter(o.name.lower() for o in outputs)
    if all(n == 1 for n in times.values()):
        return tuple(o.name for o in outputs)
    taken: set[str] = set()
    for o in outputs:
        if o.is_alias:
            if o.name.lower() in taken:
                raise Mistake(f'two result columns are named "{o.name}"', o.span)
            taken.add(o.name.lower())
    names = []
    for o in outputs:
        name = o.name
        if not o.is_alias:
            if times[name.lower()] > 1 and o.qualifier is not None:
                name = f"{o.qualifier}.{name}"
            name = _numbered(name, taken)
            taken.add(name.lower())
        names.append(name)
    return tuple(names)


def _numbered(name: str, taken: set[str]) -> str:
    candidate, number = name, 1
    while candidate.lower() in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def label(text: str, span: Span) -> str:
    """A readable name for an expression: its text, evenly spaced, keywords and calls in small."""
    tokens = tokenize(text[span[0] : span[1]])[:-1]
    pieces: list[str] = []
    tight = True  # nothing, or what the next piece sticks to
    for i, token in enumerate(tokens):
        is_call = i + 1 < len(tokens) and tokens[i + 1].key == "("
        small = token.key in RESERVED or (token.kind is Kind.WORD and is_call)
        piece = token.text.lower() if small else token.text
        sticks = tight or token.key in (")", ",", ".", "]")
        if token.key == "(" and i > 0 and tokens[i - 1].kind is Kind.WORD:
            sticks = sticks or tokens[i - 1].key not in RESERVED
        pieces.append(piece if sticks else " " + piece)
        sign = token.key in ("-", "+") and (i == 0 or _opens_operand(tokens[i - 1].key))
        tight = token.key in ("(", ".", "[") or sign
    return "".join(pieces)


def _opens_operand(key: str) -> bool:
    """Whether a sign after this belongs to an operand."""
    return key in ("(", ",", "+", "-", "*", "/", "%", "||", "=", "<", ">", "<=", ">=", "<>", "!=")
