"""Which rows of a base stream a query can need: what is left of its conditions at the stream.

Source: COSMOS 3.2, source profiles. A row that no alternative lets through has no effect on the
query's result, so that it need not be sent to where the query runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from thalweg.plan import nodes
from thalweg.plan.expr import Expr, columns_of, conjunction, conjuncts, shift, substitute
from thalweg.plan.nodes import Node, SetKind, StreamKind
from thalweg.plan.windows import HopWindow, TimeWindow

Conditions = tuple[Expr, ...]  # over the columns of a node: what is wanted fulfils all of them
EVERYTHING = None

MOST_ALTERNATIVES = 32  # then it is simpler to send everything


def wanted_rows(plan: Node, stream: str) -> frozenset[Expr] | None:
    """Conditions on the stream's own columns, one of which a row must fulfil; None: all rows are
    wanted."""
    if any(
        isinstance(n, nodes.ToStream) and n.kind is StreamKind.RSTREAM for n in nodes.walk(plan)
    ):
        return EVERYTHING  # it speaks at every tuple's instant, wanted or not
    found = list(_at_scans(plan, (), stream))
    if not found or any(not conditions for conditions in found):
        return EVERYTHING
    alternatives = frozenset(conjunction(c) for c in found)
    return alternatives if len(alternatives) <= MOST_ALTERNATIVES else EVERYTHING


def _at_scans(node: Node, conditions: Conditions, stream: str) -> Iterator[Conditions]:
    """The conditions at each place where the stream is read."""
    match node:
        case nodes.Scan(of):
            if of.name == stream:
                yield conditions
        case nodes.Window(source, spec):
            is_base = isinstance(source, nodes.Scan | nodes.DueRows)
            own = _within(conditions, 0, len(source.schema)) if is_base else ()
            if not isinstance(spec, TimeWindow | HopWindow):
                # Which rows a Rows window or a session holds depends on all that came, but only
                # of the same Partition By keys.
                keys = set(spec.partition_by)
                own = tuple(c for c in own if columns_of(c) <= keys)
            yield from _at_scans(source, own, stream)
        case nodes.DueRows(source):
            yield from _at_scans(source, (*conditions, node.is_due), stream)
        case nodes.Filter(source, predicate):
            yield from _at_scans(source, (*conditions, *conjuncts(predicate)), stream)
        case nodes.Project(source, exprs, _):
            below = tuple(substitute(c, exprs) for c in conditions)
            yield from _at_scans(source, below, stream)
        case nodes.Join(inputs, condition):
            yield from _beside(inputs, (*conditions, *conjuncts(condition)), stream)
        case nodes.LeftJoin(left, right, condition):
            width = len(left.schema)
            yield from _at_scans(left, _within(conditions, 0, width), stream)
            matching = _within(conjuncts(condition), width, width + len(right.schema))
            yield from _at_scans(right, matching, stream)
        case nodes.Mark(source, subquery, correlation, _):
            width = len(source.schema)
            yield from _at_scans(source, _within(conditions, 0, width), stream)
            matching = _within(conjuncts(correlation), width, width + len(subquery.schema))
            yield from _at_scans(subquery, matching, stream)
        case nodes.Distinct(source):
            yield from _at_scans(source, conditions, stream)
        case nodes.SetOp(SetKind.UNION, _, left, right):
            yield from _at_scans(left, conditions, stream)
            yield from _at_scans(right, conditions, stream)
        case _:
            for source in nodes.inputs_of(node):
                yield from _at_scans(source, (), stream)


def _beside(inputs: tuple[Node, ...], conditions: Conditions, stream: str) -> Iterator[Conditions]:
    begin = 0
    for source in inputs:
        end = begin + len(source.schema)
        yield from _at_scans(source, _within(conditions, begin, end), stream)
        begin = end


def _within(conditions: Conditions, begin: int, end: int) -> Conditions:
    """Those that look at these columns only, as conditions on them."""
    return tuple(
        shift(c, -begin)
        for c in conditions
        if (used := columns_of(c)) and begin <= min(used) and max(used) < end
    )
