"""Which of a stream's columns are kept: all, but for wide ones that nobody looks at.

What lands has all columns, and so have SteMs, for queries to come. A column that its stream
declares WIDE is kept while some query looks at it. A query that wants one that was not kept sees
the stream from its next tuple on; what was stored before lies behind the query's horizon.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from thalweg.engine.shared.compile import physical as ph
from thalweg.plan.catalog import StreamDef
from thalweg.plan.expr import Expr, columns_of

Needed = dict[str, frozenset[int]]


def needed_columns(outputs: Iterable[ph.AnyOp]) -> Needed:
    """By stream, the columns that these operators look at."""
    look = _Look()
    for output in outputs:
        look.at(output, None)
    return {stream: frozenset(columns) for stream, columns in look.found.items()}


def valued_columns(outputs: Iterable[ph.AnyOp]) -> Needed:
    """By stream, the columns whose values make a difference: what these operators say is the same,
    whatever is in the others, and if that is one thing now and another later."""
    look = _LookAtValues()
    for output in outputs:
        look.at(output, None)
    return {stream: frozenset(columns) for stream, columns in look.found.items()}


def kept_columns(stream: StreamDef, needed: frozenset[int]) -> frozenset[int]:
    """Of a stream's columns, those that its SteMs have."""
    kept = needed.union(range(len(stream.fields))).difference(set(stream.wide) - needed)
    return kept or frozenset((0,))  # a frame needs a column to have a height


class _Look:
    def __init__(self) -> None:
        self.found: dict[str, set[int]] = {}
        self._seen: set[tuple[int, frozenset[int] | None]] = set()  # operators share inputs

    def at(self, op: ph.AnyOp, wanted: frozenset[int] | None) -> None:
        """`wanted` are the columns that the operator above looks at; None: all of them."""
        if (id(op), wanted) in self._seen:
            return
        self._seen.add((id(op), wanted))
        self._look(op, wanted)

    def _look(self, op: ph.AnyOp, wanted: frozenset[int] | None) -> None:
        match op:
            case ph.BaseStream():
                self._needs(op.stream, range(len(op.types)))
            case ph.Source():
                own = range(op.own)
                looked_at = set(own) if wanted is None else {c for c in wanted if c in own}
                looked_at |= columns_of(op.predicate)
                # A frame needs a column to have a height.
                self._needs(op.stream, looked_at or own[:1])
            case ph.Map():
                self.at(op.input, _columns((op.predicate, *op.exprs)))
            case ph.Join():
                for part, columns in zip(op.inputs, op.wanted, strict=True):
                    self.at(part, frozenset(columns))
            case ph.Exchange():
                keys = _columns(op.keys or ())
                self.at(op.input, None if wanted is None else wanted | keys)
            case ph.Partials():
                self.at(op.input, _columns((*op.keys, *op.args)))
            case ph.Aggregate():
                args = (a.arg for a in op.aggregates if a.arg is not None)
                self.at(op.input, _columns((*op.keys, *args)))
            case _:
                for part in ph.inputs_of(op):
                    self.at(part, None)

    def _needs(self, stream: str, columns: Iterable[int]) -> None:
        self.found.setdefault(stream, set()).update(columns)


class _LookAtValues(_Look):
    """Operators that keep, group or compare whole rows want all of their columns. The others work
    row by row, so that only what is looked at above them counts."""

    def _look(self, op: ph.AnyOp, wanted: frozenset[int] | None) -> None:
        match op:
            case ph.Map():
                self.at(op.input, _columns((op.predicate, *_chosen(op.exprs, wanted))))
            case ph.Join():
                used = _columns((*op.conditions, *_chosen(op.exprs, wanted)))
                for i, (part, begin) in enumerate(zip(op.inputs, op.offsets, strict=False)):
                    end = begin + len(part.types)
                    keys = (k.member(i) for k in op.keys)
                    own = _columns(k for k in keys if k is not None)
                    self.at(part, own | {c - begin for c in used if begin <= c < end})
            case ph.Union():
                for _, part in op.inputs:
                    self.at(part, wanted)
            case ph.Changes(ph.Exchange(ph.BaseStream() as base, _)) if wanted is not None:
                self._needs(base.stream, wanted or {0})
            case _:
                super()._look(op, wanted)


def _chosen(exprs: Sequence[Expr], wanted: frozenset[int] | None) -> Iterable[Expr]:
    return exprs if wanted is None else (e for i, e in enumerate(exprs) if i in wanted)


def _columns(exprs: Iterable[Expr]) -> frozenset[int]:
    return frozenset(c for e in exprs for c in columns_of(e))
