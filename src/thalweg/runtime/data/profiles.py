"""Which rows of another node's stream are wanted, as conditions in CQL.

A condition is sent as text, since the publisher keeps it as a statement. One whose text does not
give the same condition when it is read again is not sent: then all rows are.
"""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.cql import CqlError, compile_script
from thalweg.engine.site.publications import publication_text
from thalweg.plan.catalog import Catalog, StreamDef
from thalweg.plan.expr import Expr
from thalweg.plan.nodes import Filter, walk
from thalweg.plan.text import expr_text
from thalweg.plan.wanted_rows import MOST_ALTERNATIVES

Where = tuple[str, ...]  # one of which a row must fulfil


def where_of(stream: StreamDef, wanted: frozenset[Expr] | None) -> Where | None:
    """None: all rows are wanted, or can't be told apart by a text."""
    if wanted is None:
        return None
    texts = tuple(sorted(expr_text(e, stream.fields) for e in wanted))
    return texts if conditions_of(stream, texts) == wanted else None


def conditions_of(stream: StreamDef, where: Sequence[str]) -> frozenset[Expr] | None:
    """What the texts mean; None if one of them means nothing."""
    found = [_condition(stream, text) for text in where]
    return None if None in found else frozenset(e for e in found if e is not None)


def _condition(stream: StreamDef, text: str) -> Expr | None:
    catalog = Catalog().with_definition(stream)
    try:
        script = compile_script(publication_text(stream, "pub/it", 0, (text,)), catalog)
    except CqlError:
        return None
    filters = [n for n in walk(script.queries[0].plan) if isinstance(n, Filter)]
    return filters[0].predicate if len(filters) == 1 else None


def merged(one: Where | None, other: Where | None) -> Where | None:
    """What somebody wants who wants either."""
    if one is None or other is None:
        return None
    both = {*one, *other}
    return tuple(sorted(both)) if len(both) <= MOST_ALTERNATIVES else None


def covers(given: Where | None, wanted: Where | None) -> bool:
    return given is None or (wanted is not None and set(wanted) <= set(given))
