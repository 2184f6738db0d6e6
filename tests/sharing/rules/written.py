"""Conditions and values over stream A as the compiler writes them, before any rule."""

from __future__ import annotations

from tests.sharing.drawing import plan_of

from thalweg.plan.expr import Expr
from thalweg.plan.nodes import Filter, Project


def condition(text: str, source: str = "A") -> Expr:
    plan = plan_of(f"SELECT k FROM {source} [Now] WHERE {text}")
    assert isinstance(plan, Project)
    assert isinstance(plan.input, Filter)
    return plan.input.predicate


def value(text: str, source: str = "A") -> Expr:
    plan = plan_of(f"SELECT {text} AS e FROM {source} [Now]")
    assert isinstance(plan, Project)
    return plan.exprs[0]
