"""How a core's columns are called when people read about them."""

from __future__ import annotations

from collections import Counter

from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.nodes import Schema


def leaf_names(streams: tuple[StreamDef, ...]) -> tuple[str, ...]:
    """The streams' names; of a stream that is joined with itself, numbered."""
    of_each = Counter(s.name for s in streams)
    seen: Counter[str] = Counter()
    names = []
    for stream in streams:
        seen[stream.name] += 1
        alone = of_each[stream.name] == 1
        names.append(stream.name if alone else f"{stream.name}{seen[stream.name]}")
    return tuple(names)


def named_columns(streams: tuple[StreamDef, ...]) -> Schema:
    """Columns by their names, and their leaf's name where there are several."""
    if len(streams) == 1:
        return streams[0].fields
    return tuple(
        Field(f"{name}.{f.name}", f.type)
        for name, stream in zip(leaf_names(streams), streams, strict=True)
        for f in stream.fields
    )
