"""From a logical plan to physical operators."""

from __future__ import annotations

from dataclasses import replace

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.compile.blocks import (
    block,
    by_row,
    closed,
    distinct,
    identity,
    nameless,
    netted,
)
from thalweg.engine.shared.compile.panes import paned
from thalweg.engine.shared.compile.semijoins import (
    Semi,
    left_join,
    marked,
    minus,
    semi,
)
from thalweg.engine.shared.frames import Types
from thalweg.plan import nodes
from thalweg.plan.aggregates import AggCall
from thalweg.plan.blocks import Block, block_of
from thalweg.plan.catalog import PLACE
from thalweg.plan.expr import (
    FALSE,
    TRUE,
    Call,
    Col,
    Expr,
    columns_of,
    conjunction,
    conjuncts,
)
from thalweg.plan.matching import possible, sure
from thalweg.plan.nodes import SetKind
from thalweg.plan.types import BOOLEAN
from thalweg.plan.windows import (
    UNBOUNDED,
    HopWindow,
    RowsWindow,
    SessionWindow,
    TimeWindow,
    WindowSpec,
)


def compile_query(plan: nodes.Node, semi: Semi = semi) -> ph.Output:
    """What a query emits: its relation's changelog, or the stream that it is."""
    return _Compiler(semi).query(plan)


class _Compiler:
    def __init__(self, semi: Semi) -> None:
        self._semi = semi  # how sub-queries' rows are matched

    def query(self, plan: nodes.Node) -> ph.Output:
        if isinstance(plan, nodes.ToStream):
            inner = self._to_stream(plan)
            return ph.Output(inner, plan.kind, _heard(inner, plan.kind))
        if plan.is_stream:
            everything = nodes.Window(plan, UNBOUNDED)
            return ph.Output(netted(self._relation(everything)), nodes.StreamKind.ISTREAM)
        return ph.Output(netted(self._relation(plan)), None)

    def _to_stream(self, node: nodes.ToStream) -> ph.Exchange:
        """RSTREAM keeps whole rows by their hash; the others only net them."""
        inner = self._relation(node.input)
        return by_row(inner) if node.kind is nodes.StreamKind.RSTREAM else netted(inner)

    def _relation(self, node: nodes.Node) -> ph.Op:
        return closed(block_of(node, self._leaf))

    def _leaf(self, node: nodes.Node) -> Block[ph.Op]:
        """Where a select-project-join block ends: the operator there."""
        match node:
            case nodes.Filter(nodes.Mark() as mark, predicate):
                return self._filtered_mark(mark, predicate)
            case nodes.Window(nodes.Scan(stream), (TimeWindow() | HopWindow()) as spec):
                return _one(ph.Source(stream.name, _types(node), spec, placed=stream.is_placed))
            case nodes.Window(source, spec):
                return _one(self._window(source, spec))
            case nodes.Scan(stream):
                changes = ph.BaseStream(stream.name, _types(node), signed=True)
                return _one(ph.Changes(ph.Exchange(changes, identity(changes))))
            case nodes.Aggregate(source, keys, aggregates, _):
                inner = self._relation(source)
                return _one(_aggregate(inner, keys, aggregates, nodes.resolution_us(source)))
            case nodes.Distinct(source):
                return _one(distinct(self._relation(source)))
            case nodes.TopK():
                return _one(self._top(node))
            case nodes.SetOp():
                return _one(self._set_op(node))
            case nodes.LeftJoin(left, right, condition):
                return _one(
                    left_join(
                        self._relation(left), self._relation(right), nameless(condition), self._semi
                    )
                )
            case nodes.Mark():
                correlation, match = _conditions(node)
                left, right = self._relation(node.input), self._relation(node.subquery)
                return _one(marked(left, right, correlation, match, self._semi))
            case nodes.ToStream():
                raise AssertionError("a stream under a relation has a window above it")
            case _:
                raise AssertionError(f"{type(node).__name__} is part of a block")

    def _window(self, source: nodes.Node, spec: WindowSpec) -> ph.Op:
        stream = self._stream(source)
        match spec:
            case RowsWindow():
                return ph.RowsOf(_by_columns(stream, spec.partition_by), spec)
            case SessionWindow():
                return ph.SessionsOf(_by_columns(stream, spec.partition_by), spec)
            case _:
                return ph.TimeOf(stream, spec)

    def _stream(self, source: nodes.Node) -> ph.StreamOp:
        if isinstance(source, nodes.Scan):
            return ph.BaseStream(source.stream.name, _types(source))
        if isinstance(source, nodes.DueRows):
            assert isinstance(source.input, nodes.Scan)
            base = ph.BaseStream(source.input.stream.name, _types(source.input))
            return ph.DueOf(base, nameless(source.is_due))
        if isinstance(source, nodes.Tolerant):
            due = tolerant_op(source)
            return ph.PlacedOf(due) if source.stream.is_placed else due
        assert isinstance(source, nodes.ToStream)
        inner = self._to_stream(source)
        return ph.StreamOf(source.kind, inner, _heard(inner, source.kind))

    def _top(self, node: nodes.TopK) -> ph.Op:
        keys = tuple(replace(k, expr=nameless(k.expr)) for k in node.keys)
        partition = tuple(nameless(e) for e in node.partition_by)
        inner = ph.Exchange(self._relation(node.input), partition)
        return ph.TopK(inner, keys, node.count, nodes.never_retracts(node.input))

    def _set_op(self, node: nodes.SetOp) -> ph.Op:
        left, right = self._relation(node.left), self._relation(node.right)
        if node.kind is SetKind.UNION:
            union = ph.Union(((1, left), (1, right)))
            return union if node.all else distinct(union)
        return ph.SetOp(node.kind, node.all, by_row(left), by_row(right))

    def _filtered_mark(self, mark: nodes.Mark, predicate: Expr) -> Block[ph.Op]:
        """WHERE over a sub-query predicate: a semi- or anti-join where the mark stands alone."""
        column = len(mark.input.schema)
        here = Col(column, BOOLEAN)
        direct = [p for p in conjuncts(predicate) if column in columns_of(p)]
        below = [p for p in conjuncts(predicate) if column not in columns_of(p)]
        source = nodes.Filter(mark.input, conjunction(below)) if below else mark.input
        left, right = self._relation(source), self._relation(mark.subquery)
        correlation, match = _conditions(mark)
        if direct == [here]:
            kept = self._semi(left, right, sure(correlation, match))
            return block((kept,), (), (*identity(kept), TRUE))
        if direct == [Call("not", (here,), BOOLEAN)]:
            kept = minus(left, self._semi(left, right, possible(correlation, match)))
            return block((kept,), (), (*identity(kept), FALSE))
        return block((marked(left, right, correlation, match, self._semi),), tuple(direct))


def tolerant_op(node: nodes.Tolerant) -> ph.TolerantOf:
    """All classes of a stream that count by the same key stand on one input, unfiltered."""
    own = node.schema[: -len(PLACE)] if node.stream.is_placed else node.schema
    unfiltered = ph.BaseStream(node.stream.name, tuple(f.type for f in own))
    return ph.TolerantOf(_by_columns(unfiltered, node.per), node.tolerance, node.column)


def _one(op: ph.Op) -> Block[ph.Op]:
    return block((op,))


def _types(node: nodes.Node) -> Types:
    return tuple(f.type for f in node.schema)


def _by_columns(stream: ph.StreamOp, columns: tuple[int, ...]) -> ph.Exchange:
    return ph.Exchange(stream, tuple(Col(k, stream.types[k]) for k in columns))


def _heard(inner: ph.Op, kind: nodes.StreamKind) -> tuple[ph.Exchange, ...]:
    """The base relations whose accepted changes are RSTREAM's instants."""
    if kind is not nodes.StreamKind.RSTREAM:
        return ()
    found = dict.fromkeys(op for op in ph.walk(inner) if isinstance(op, ph.Changes))
    return tuple(ph.Exchange(op, None) for op in found)


def _aggregate(
    inner: ph.Op, keys: tuple[Expr, ...], aggregates: tuple[AggCall, ...], resolution_us: int
) -> ph.Op:
    keys = tuple(nameless(k) for k in keys)
    calls = tuple(
        AggCall(a.function, None if a.arg is None else nameless(a.arg), a.distinct)
        for a in aggregates
    )
    over_panes = paned(inner, keys, calls, resolution_us)
    return over_panes or ph.Aggregate(ph.Exchange(inner, keys), keys, calls)


def _conditions(mark: nodes.Mark) -> tuple[Expr, Expr | None]:
    match = None if mark.match is None else nameless(mark.match)
    return nameless(mark.correlation), match
