"""Which classes' rows are wanted of a stream of due rows, by those who read it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from thalweg.cql.bind.dependencies import dependents
from thalweg.engine.shared.state.names import LABEL
from thalweg.plan.catalog import Catalog, StreamDef
from thalweg.plan.expr import Expr
from thalweg.plan.wanted_rows import wanted_rows
from thalweg.runtime.data.profiles import conditions_of
from thalweg.runtime.network.labels.labels import numbers_in

Numbers = frozenset[int] | None  # None: all of them


def numbers_of(due: StreamDef, where: Sequence[str] | None) -> Numbers:
    """By the conditions of a reader."""
    return _numbers(due, None if where is None else conditions_of(due, where))


def numbers_read(due: StreamDef, catalog: Catalog) -> list[Numbers]:
    """By each query here that reads the stream."""
    readers = dependents(due, catalog)
    return [_numbers(due, wanted_rows(reader.plan, due.name)) for reader in readers]


def _numbers(due: StreamDef, conditions: Iterable[Expr] | None) -> Numbers:
    label = next((i for i, f in enumerate(due.fields) if f.name == LABEL), None)
    # Without one, an older version has begun it.
    return None if conditions is None or label is None else numbers_in(conditions, label)
