"""Plans with constants left open, and how they are filled.

A statement is bound with a `Hole` in place of a constant's value. Binding looks at such a value in
two places only: a cast of a constant gives another constant (`plan.functions.cast`), and of equal
parts a conjunction keeps one (`plan.expr.conjunction`). Filling does both again, and so gives what
binding would have given. It is done in conditions alone, where nothing else compares expressions
with each other, as GROUP BY does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from thalweg.cql.syntax import Literal
from thalweg.plan.expr import Call, Case, Cast, Col, Expr, Lit, children, conjunction, walk
from thalweg.plan.functions import cast
from thalweg.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    LeftJoin,
    Mark,
    Node,
    Project,
    ToStream,
    inputs_of,
    with_inputs,
)
from thalweg.plan.nodes import walk as walk_nodes

Constants = Sequence[Lit | None]  # by the holes' numbers; None where there is no hole


@dataclass(frozen=True, slots=True)
class Hole:
    number: int


class Holes:
    """Constants of a text that are left open, numbered by where they end."""

    def __init__(self, numbers: Mapping[int, int]) -> None:
        self._numbers = numbers
        self.literals: dict[int, Literal] = {}  # by number, as they are bound

    def constant(self, literal: Literal) -> Lit:
        # A literal may begin before its constant, with a sign or a type; it ends with it.
        number = self._numbers.get(literal.span[1])
        if number is None:
            return Lit(literal.value, literal.type)
        self.literals[number] = literal
        return Lit(Hole(number), literal.type)  # type: ignore[arg-type]


def are_in_conditions(plan: Node) -> bool:
    """Whether all holes are where they may be filled."""
    return not any(_has_hole(e) for node in walk_nodes(plan) for e in _others(node))


def _others(node: Node) -> Iterator[Expr]:
    """A node's expressions that are no condition on its rows."""
    match node:
        case Project(_, exprs, _):
            yield from exprs
        case Aggregate(_, keys, aggregates, _):
            yield from keys
            yield from (a.arg for a in aggregates if a.arg is not None)
        case Mark(_, _, correlation, match):
            yield correlation
            if match is not None:
                yield match


def _has_hole(expr: Expr) -> bool:
    return any(_hole(e) is not None for e in walk(expr))


def _hole(expr: Expr) -> Hole | None:
    value: object = expr.value if isinstance(expr, Lit) else None
    return value if isinstance(value, Hole) else None


class OpenPlan:
    """A plan with holes in its conditions."""

    def __init__(self, plan: Node) -> None:
        self._plan = plan
        # All that has a hole in it, by identity: the rest stays as it is.
        self._open = {id(e) for e in _conditions_below(plan) for e in walk(e) if _has_hole(e)}
        self._open |= {id(n) for n in walk_nodes(plan) if any(map(_has_hole, _conditions_below(n)))}
        self._apart = {
            id(e) for e in _conditions_below(plan) for e in walk(e) if _are_apart(children(e))
        }

    def filled(self, constants: Constants) -> Node:
        return self._node(self._plan, constants)

    def _node(self, node: Node, constants: Constants) -> Node:
        if id(node) not in self._open:
            return node
        match node:
            case ToStream(kind, source):
                return ToStream(kind, self._node(source, constants))
            case Project(source, exprs, names):
                return Project(self._node(source, constants), exprs, names)
            case Filter(source, condition):
                return Filter(self._node(source, constants), self._expr(condition, constants))
            case Join(inputs, condition):
                sources = tuple([self._node(n, constants) for n in inputs])
                return Join(sources, self._expr(condition, constants))
            case LeftJoin(left, right, condition):
                sides = self._node(left, constants), self._node(right, constants)
                return LeftJoin(*sides, self._expr(condition, constants))
            case _:
                return with_inputs(node, tuple([self._node(n, constants) for n in inputs_of(node)]))

    def _expr(self, expr: Expr, constants: Constants) -> Expr:
        if id(expr) not in self._open:
            return expr
        match expr:
            case Lit(_, type_):
                hole = _hole(expr)
                assert hole is not None
                constant = constants[hole.number]
                assert constant is not None
                return constant if constant.type is type_ else Lit(constant.value, type_)
            case Call("and", args, _) if id(expr) not in self._apart:
                return conjunction([self._expr(a, constants) for a in args])
            case Call(function, args, type_):
                return Call(function, tuple([self._expr(a, constants) for a in args]), type_)
            case Cast(arg, type_):
                return cast(self._expr(arg, constants), type_)
            case Case(branches, otherwise, type_):
                filled = [(self._expr(c, constants), self._expr(v, constants)) for c, v in branches]
                return Case(tuple(filled), self._expr(otherwise, constants), type_)
            case _:
                raise AssertionError(f"a column has no constant: {expr}")


def _are_apart(parts: tuple[Expr, ...]) -> bool:
    """Whether no two of them can be equal, whatever their constants are."""
    return len({_without_constants(p) for p in parts}) == len(parts)


def _without_constants(expr: Expr) -> object:
    match expr:
        case Lit():
            return "constant"
        case Cast(arg, type_):
            inner = _without_constants(arg)  # of a constant it may be another constant
            return inner if inner == "constant" else (inner, type_)
        case Col(index, _, _):
            return index
        case _:
            function = expr.function if isinstance(expr, Call) else "case"
            return function, *map(_without_constants, children(expr))


def _conditions_below(plan: Node) -> list[Expr]:
    return [
        node.predicate if isinstance(node, Filter) else node.condition
        for node in walk_nodes(plan)
        if isinstance(node, Filter | Join | LeftJoin)
    ]
