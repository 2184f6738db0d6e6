"""Streams that tell two queries apart, if streams of one tuple each do.

Columns that either query reads take all values of a small domain, timestamps all small
combinations; what could tell the two apart is put before the reference, who judges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from tests.sharing.interval_rows import valid

from thalweg.engine.arrivals import Arrival, Row
from thalweg.engine.changelog import Change, relation_at
from thalweg.engine.reference import evaluate
from thalweg.engine.reference.expressions import evaluate as value_of
from thalweg.engine.reference.expressions import holds
from thalweg.plan.expr import columns_of
from thalweg.plan.nodes import Node
from thalweg.sharing.core import Core
from thalweg.sharing.plans import conditions_of, fields_of

Inputs = dict[str, list[Arrival]]


def is_part_on(inputs: Mapping[str, list[Arrival]], inner: Node, outer: Node) -> bool:
    """Whether at every instant the inner's result is a part of the outer's: the relation that it
    is, or what the stream says then."""
    part, whole = evaluate(inner, inputs), evaluate(outer, inputs)
    content = _said_at if inner.is_stream else relation_at
    return all(content(part, c.ts) <= content(whole, c.ts) for c in (*part, *whole))


def _said_at(changes: Iterable[Change], ts: int) -> Counter[Row]:
    return Counter(c.row for c in changes if c.ts == ts)


def candidates(
    outer: Core, inner: Core, values: Sequence[Any], instants: Sequence[int]
) -> Iterator[Inputs]:
    """One tuple per stream such that the inner core has a row that the outer lacks."""
    stamps = _timestamp_columns(inner)
    exprs = [
        *(e for core in (outer, inner) for e in (*conditions_of(core), *core.outputs)),
    ]
    read = sorted(frozenset().union(*map(columns_of, exprs)) - set(stamps))
    wanted, other = conditions_of(inner), conditions_of(outer)
    for timestamps in product(instants, repeat=len(inner.streams)):
        start, end = valid(inner.windows, timestamps)
        if start >= end:
            continue
        is_shorter = valid(outer.windows, timestamps)[1] < end
        row = [values[0]] * len(fields_of(inner.streams))
        for column, leaf in stamps.items():
            row[column] = timestamps[leaf]
        for chosen in product(values, repeat=len(read)):
            for column, value in zip(read, chosen, strict=True):
                row[column] = value
            full = tuple(row)
            if all(holds(c, full) for c in wanted) and (
                is_shorter
                or not all(holds(c, full) for c in other)
                or [value_of(e, full) for e in inner.outputs]
                != [value_of(e, full) for e in outer.outputs]
            ):
                yield _instance(inner, full, timestamps)


def _timestamp_columns(core: Core) -> dict[int, int]:
    """Column -> leaf."""
    pairs = zip(core.streams, core.offsets, strict=False)
    return {
        begin + stream.timestamp_index: leaf
        for leaf, (stream, begin) in enumerate(pairs)
        if stream.timestamp_index is not None
    }


def _instance(core: Core, row: tuple[Any, ...], timestamps: tuple[int, ...]) -> Inputs:
    inputs: Inputs = {}
    for stream, begin, timestamp in zip(core.streams, core.offsets, timestamps, strict=False):
        own = row[begin : begin + len(stream.fields)]
        inputs[stream.name] = [Arrival(0, timestamp, 0, own)]
    return inputs
