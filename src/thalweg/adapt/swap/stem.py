"""A SteM of one node: all rows that hold a stream's data, base or intermediate (COSMOS 5.2.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from thalweg.adapt.swap.messages import Parts, Row
from thalweg.adapt.swap.query import Value

_NOTHING: Mapping[int, Row] = {}


class Stem:
    """Rows by the number of their arrival, indexed by the stream's columns that are joined."""

    __slots__ = ("_indexes", "rows", "stream")

    def __init__(self, stream: int, columns: Iterable[int]) -> None:
        self.stream = stream
        self.rows: dict[int, Row] = {}
        self._indexes: dict[int, dict[Value, dict[int, Row]]] = {c: {} for c in columns}

    def put(self, number: int, row: Row) -> None:
        """A new row, or one whose end has changed."""
        self.rows[number] = row
        values = values_of(row.parts, self.stream)
        for column, index in self._indexes.items():
            value = values[column]
            if value is not None:  # NULL equals nothing
                index.setdefault(value, {})[number] = row

    def remove(self, number: int) -> None:
        row = self.rows.pop(number)
        values = values_of(row.parts, self.stream)
        for column, index in self._indexes.items():
            value = values[column]
            if value is not None:
                rows = index[value]
                del rows[number]
                if not rows:
                    del index[value]

    def matches(self, column: int, value: Value) -> Mapping[int, Row]:
        return self._indexes[column].get(value, _NOTHING) if value is not None else _NOTHING


def values_of(parts: Parts, stream: int) -> tuple[Value, ...]:
    for held, values in parts:
        if held == stream:
            return values
    raise KeyError(stream)
