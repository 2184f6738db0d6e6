"""Statements that hold a plan (`cql/bind/placed.py`), as a node writes them into its book."""

from __future__ import annotations

from thalweg.cql import parse_script, syntax
from thalweg.plan.nodes import Node, base_streams
from thalweg.plan.travelling import plan_text
from thalweg.runtime.data.statements import quoted


def placed_text(name: str, plan: Node, user_text: str | None = None) -> str:
    """A query that computes the plan; `user_text` is what its user has written behind AS."""
    over = ", ".join(quoted(s.name) for s in base_streams(plan))
    behind = "" if user_text is None else f" AS {user_text}"
    return f"CREATE QUERY {quoted(name)} PLACED '{plan_text(plan)}' OVER ({over}){behind}"


def select_of(text: str) -> str:
    """What stands behind AS in the one CREATE QUERY of a text."""
    (statement,) = parse_script(text)
    assert isinstance(statement, syntax.CreateQuery)
    return text[statement.query.span[0] : statement.span[1]]
