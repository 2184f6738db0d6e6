"""Scalar expressions over the columns of one input row.

Columns are named by position, so that equal names of different streams can't be confused.
Every expression knows its type; `thalweg.plan.functions.call` builds well-typed calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal

from thalweg.plan.types import BOOLEAN, NULL, SqlType, can_cast

Value = bool | int | float | Decimal | str | date | datetime | None


@dataclass(frozen=True, slots=True)
class Col:
    """The input row's column at `index`; the name is for people and does not matter."""

    index: int
    type: SqlType
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.index < 0:
            raise ValueError(f"column index {self.index} is negative")


@dataclass(frozen=True, slots=True)
class Lit:
    """A constant; an INTERVAL is carried as int microseconds."""

    value: Value
    type: SqlType

    def __eq__(self, other: object) -> bool:
        # 1 == True == 1.0 in Python, but they are different constants.
        return isinstance(other, Lit) and (self.type, type(self.value), self.value) == (
            other.type,
            type(other.value),
            other.value,
        )

    def __hash__(self) -> int:
        return hash((self.type, self.value))


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator of `thalweg.plan.functions.FUNCTIONS` applied to arguments."""

    function: str
    args: tuple[Expr, ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class Case:
    """CASE WHEN condition THEN value … ELSE otherwise END; all values have the case's type."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr
    type: SqlType

    def __post_init__(self) -> None:
        if not self.branches:
            raise ValueError("CASE needs at least one WHEN")
        for condition, value in self.branches:
            if condition.type not in (BOOLEAN, NULL):
                raise ValueError(f"a CASE condition is BOOLEAN, not {condition.type}")
            if value.type != self.type:
                raise ValueError(f"a CASE branch is {value.type}, the whole is {self.type}")


@dataclass(frozen=True, slots=True)
class Cast:
    """CAST; what can't be represented in the target becomes NULL."""

    arg: Expr
    type: SqlType

    def __post_init__(self) -> None:
        if not can_cast(self.arg.type, self.type):
            raise ValueError(f"{self.arg.type} can't be cast to {self.type}")


Expr = Col | Lit | Call | Case | Cast

TRUE = Lit(True, BOOLEAN)
FALSE = Lit(False, BOOLEAN)


def children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Call(_, args, _):
            return args
        case Case(branches, otherwise, _):
            return tuple(e for branch in branches for e in branch) + (otherwise,)
        case Cast(arg, _):
            return (arg,)
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all its parts, parents first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def transform(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Rebuild bottom-up with `change` applied to every part."""
    match expr:
        case Call(function, args, type_):
            return change(Call(function, tuple([transform(a, change) for a in args]), type_))
        case Case(branches, otherwise, type_):
            rebuilt = tuple([(transform(c, change), transform(v, change)) for c, v in branches])
            return change(Case(rebuilt, transform(otherwise, change), type_))
        case Cast(arg, type_):
            return change(Cast(transform(arg, change), type_))
        case _:
            return change(expr)


def columns_of(expr: Expr) -> frozenset[int]:
    found: set[int] = set()
    left = [expr]
    while left:  # not by `walk`: this is asked of every expression of every query
        part = left.pop()
        if isinstance(part, Col):
            found.add(part.index)
        else:
            left += children(part)
    return frozenset(found)


def remap(expr: Expr, mapping: Callable[[int], int]) -> Expr:
    """The same expression over an input whose columns have moved."""

    def move(e: Expr) -> Expr:
        return replace(e, index=mapping(e.index)) if isinstance(e, Col) else e

    return transform(expr, move)


def shift(expr: Expr, by: int) -> Expr:
    return remap(expr, lambda index: index + by)


def substitute(expr: Expr, exprs: tuple[Expr, ...]) -> Expr:
    """Replace each column by the expression that computes it (a projection pulled through)."""

    def inline(e: Expr) -> Expr:
        return exprs[e.index] if isinstance(e, Col) else e

    return transform(expr, inline)


def conjuncts(predicate: Expr) -> tuple[Expr, ...]:
    """The parts of a conjunction; TRUE has none."""
    if predicate == TRUE:
        return ()
    if isinstance(predicate, Call) and predicate.function == "and":
        return tuple(part for arg in predicate.args for part in conjuncts(arg))
    return (predicate,)


def conjunction(parts: tuple[Expr, ...] | list[Expr]) -> Expr:
    """AND of the parts, duplicates dropped, order kept; TRUE of none."""
    flat = [p for part in parts for p in conjuncts(part)]
    unique = tuple(dict.fromkeys(flat)) if len(flat) > 1 else tuple(flat)
    if not unique:
        return TRUE
    return unique[0] if len(unique) == 1 else Call("and", unique, BOOLEAN)
