"""Queries that hold their plan: PLACED '…' OVER (streams).

A network's nodes write them, for parts of a query that another node computes: there is no text of
such a part. What stands behind AS is what the user has written, and is not looked at.
"""

from __future__ import annotations

from thalweg.cql import syntax
from thalweg.cql.bind.context import Context
from thalweg.cql.errors import Mistake
from thalweg.plan.catalog import StreamDef
from thalweg.plan.encoding import EncodingError
from thalweg.plan.nodes import Node, base_streams
from thalweg.plan.travelling import plan_of_text, rebound


def bind_placed(query: syntax.PlacedQuery, context: Context) -> Node:
    def find(name: str) -> StreamDef | None:
        found = context.catalog.find(name)
        return found if isinstance(found, StreamDef) else None

    try:
        plan = rebound(plan_of_text(query.plan), find)
    except EncodingError as error:
        raise Mistake(f"a plan that is placed: {error}", query.span) from None
    if {s.name for s in base_streams(plan)} != {n.text for n in query.over}:
        raise Mistake("the plan reads other streams than OVER names", query.span)
    return plan
