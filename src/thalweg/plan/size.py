"""How large a plan is once every view in it is written out.

Views are inlined, and a plan that names one twice has it twice: a few lines of text can stand for
millions of operators, or for an expression of millions of terms. In memory they are shared, so that
the size can be told without ever walking through it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from thalweg.plan.expr import Call, Case, Cast, Col, Expr, Lit, children
from thalweg.plan.nodes import Filter, Join, LeftJoin, Mark, Node, Project, inputs_of

LARGEST_PLAN = 2_000  # operators
LARGEST_EXPRESSIONS = 500_000  # terms, in all of a plan
WIDEST_JOIN = 32  # inputs of one select-project-join block


@dataclass(frozen=True, slots=True)
class PlanSize:
    operators: int
    terms: int
    widest_join: int

    def excess(self) -> str | None:
        """What is too much, if anything is."""
        if self.widest_join > WIDEST_JOIN:
            return f"{self.widest_join:,} streams joined at once: at most {WIDEST_JOIN}"
        if self.operators > LARGEST_PLAN:
            return (
                f"{self.operators:,} operators with all views written out: at most {LARGEST_PLAN:,}"
            )
        if self.terms > LARGEST_EXPRESSIONS:
            return (
                f"{self.terms:,} terms in its expressions with all views written out: "
                f"at most {LARGEST_EXPRESSIONS:,}"
            )
        return None


def size_of(plan: Node) -> PlanSize:
    measured = _Measuring()
    found = measured.node(plan)
    return PlanSize(found.operators, found.terms, max(found.widest, found.block))


@dataclass(frozen=True, slots=True)
class _Measured:
    operators: int
    terms: int
    widest: int  # of the joins below this block
    block: int  # inputs of the block that this node ends
    columns: tuple[int, ...]  # terms of each output column, within the block


class _Measuring:
    """Each node and each expression once, however often it is referred to."""

    def __init__(self) -> None:
        self._nodes: dict[int, _Measured] = {}

    def node(self, node: Node) -> _Measured:
        known = self._nodes.get(id(node))
        if known is None:
            known = self._nodes[id(node)] = self._measure(node)
        return known

    def _measure(self, node: Node) -> _Measured:
        below = [self.node(n) for n in inputs_of(node)]
        given = tuple(c for b in below for c in b.columns)
        own = [self._terms(e, given) for e in _expressions(node)]
        operators = 1 + sum(b.operators for b in below)
        terms = sum(own) + sum(b.terms for b in below)
        widest = max((b.widest for b in below), default=0)
        match node:
            case Filter():
                return _Measured(operators, terms, widest, below[0].block, given)
            case Project():
                return _Measured(operators, terms, widest, below[0].block, tuple(own))
            case Join():
                return _Measured(operators, terms, widest, sum(b.block for b in below), given)
            case LeftJoin() | Mark():
                # Either side is a block of its own.
                widest = max(widest, *(b.block for b in below))
                return _Measured(operators, terms, widest, 1, (1,) * len(node.schema))
            case _:
                widest = max([widest, *(b.block for b in below)])
                return _Measured(operators, terms, widest, 1, (1,) * len(node.schema))

    def _terms(self, expr: Expr, columns: tuple[int, ...]) -> int:
        known: dict[int, int] = {}

        def terms(e: Expr) -> int:
            if isinstance(e, Col):
                return columns[e.index]
            if id(e) not in known:
                known[id(e)] = 1 + sum(terms(c) for c in children(e))
            return known[id(e)]

        return terms(expr)


def _expressions(node: Node) -> list[Expr]:
    """Of the node itself; those of a projection in the order of its columns."""
    return [e for f in fields(node) for e in _found(getattr(node, f.name))]


def _found(value: Any) -> list[Expr]:
    if isinstance(value, Col | Lit | Call | Case | Cast):
        return [value]
    if isinstance(value, tuple):
        return [e for v in value for e in _found(v)]
    if is_dataclass(value) and hasattr(value, "arg"):  # a call of an aggregate
        return _found(value.arg)
    return []
