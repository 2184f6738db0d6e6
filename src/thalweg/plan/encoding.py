"""Plans as bytes: what a data directory keeps, what nodes send each other, what identities hash.

A value is written as plain data, then as MessagePack:

- a frozen dataclass as `{tag: [field, …]}`: fields in order, without those at the end that have
  their default, and without those that equality does not look at. Tags never change their meaning;
  classes may be renamed and moved, and may get new fields with defaults at the end.
- an enum's member as `{tag: value}`; a decimal number as `{"decimal": text}`; a date or timestamp
  as `{"date": text}`, `{"timestamp": text}`; a tuple as an array; numbers, texts and None as they
  are.

Equal values have equal bytes, in every process and version: the bytes can be hashed to identities.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import msgspec

from thalweg.plan.aggregates import AggCall
from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.coherency.tolerance import Age, ChangesSince, Deviation, RelativeDeviation
from thalweg.plan.expr import Call, Case, Cast, Col, Lit
from thalweg.plan.nodes import SetKind, SortKey, StreamKind
from thalweg.plan.types import Kind, SqlType
from thalweg.plan.windows import Bounds, HopWindow, RowsWindow, SessionWindow, TimeWindow

Tags = Mapping[str, type]

PLAN_TAGS: Tags = {
    "kind": Kind,
    "type": SqlType,
    "field": Field,
    "stream": StreamDef,
    "column": Col,
    "literal": Lit,
    "call": Call,
    "case": Case,
    "cast": Cast,
    "aggregate call": AggCall,
    "time window": TimeWindow,
    "rows window": RowsWindow,
    "hop window": HopWindow,
    "session window": SessionWindow,
    "window bounds": Bounds,
    "stream kind": StreamKind,
    "set kind": SetKind,
    "sort key": SortKey,
    "deviation": Deviation,
    "relative deviation": RelativeDeviation,
    "changes since": ChangesSince,
    "age": Age,
}


class EncodingError(ValueError):
    """Bytes that say nothing this version knows."""


class Codec:
    """Writes and reads values of the listed classes."""

    def __init__(self, tags: Tags) -> None:
        self._classes = dict(tags)
        self._tags = {cls: tag for tag, cls in tags.items()}
        assert len(self._tags) == len(tags), "a class has two tags"
        self._fields: dict[type, list[tuple[str, object]]] = {
            cls: [(f.name, f.default) for f in dataclasses.fields(cls) if f.compare]
            for cls in tags.values()
            if dataclasses.is_dataclass(cls)
        }

    def encode(self, value: object) -> bytes:
        return msgspec.msgpack.encode(self.plain(value))

    def decode(self, data: bytes) -> Any:
        return self._value(msgspec.msgpack.decode(data))

    def plain(self, value: object, instead: Callable[[object], object] | None = None) -> object:
        """The value as plain data; `instead` may give another for a dataclass inside of it."""
        if value is None or isinstance(value, bool | int | float | str | bytes):
            return value
        if isinstance(value, tuple | list):
            return [self._part(v, instead) for v in value]
        if isinstance(value, Decimal):
            return {"decimal": str(value)}
        if isinstance(value, date):  # a datetime is a date, too
            return {"timestamp" if isinstance(value, datetime) else "date": value.isoformat()}
        tag = self._tags.get(type(value))
        if tag is None:
            raise TypeError(f"{type(value).__name__} has no tag: it can't be written")
        if isinstance(value, Enum):
            return {tag: value.value}
        return {tag: [self._part(v, instead) for v in self._own(value)]}

    def _own(self, value: object) -> list[object]:
        fields = self._fields[type(value)]
        found = [getattr(value, name) for name, _ in fields]
        while found and found[-1] == fields[len(found) - 1][1]:
            found.pop()
        return found

    def _part(self, value: object, instead: Callable[[object], object] | None) -> object:
        other = None if instead is None else instead(value)
        return self.plain(value, instead) if other is None else other

    def _value(self, plain: Any) -> Any:
        if isinstance(plain, list):
            return tuple([self._value(p) for p in plain])
        if not isinstance(plain, dict):
            return plain
        ((tag, inside),) = plain.items()
        if tag == "decimal":
            return Decimal(inside)
        if tag in ("date", "timestamp"):
            return (date if tag == "date" else datetime).fromisoformat(inside)
        cls = self._classes.get(tag)
        if cls is None:
            raise EncodingError(f"{tag!r} is unknown to this version")
        if issubclass(cls, Enum):
            return cls(inside)
        names = [name for name, _ in self._fields[cls]]
        if len(inside) > len(names):
            raise EncodingError(f"{tag!r} has more fields than this version knows")
        # By name: a field that equality does not look at may stand between those that were written.
        return cls(**{name: self._value(p) for name, p in zip(names, inside, strict=False)})
