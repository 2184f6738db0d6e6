"""The network's definitions as one catalog: what statements at any node may read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from thalweg.cql import CqlError, compile_script
from thalweg.cql.bind.dependencies import names_read
from thalweg.plan.catalog import Catalog, Definition, Field, QueryDef, SinkDef, StreamDef
from thalweg.plan.nodes import Scan
from thalweg.plan.types import BIGINT
from thalweg.runtime.network.directory import FED, QUERY, SINK, VIEW, Defined

_NAME = "<network>"
# Other nodes' queries take names, and nobody reads them.
_ELSEWHERE = StreamDef("elsewhere", (Field("nothing", BIGINT),), "nothing", BIGINT)


def network_catalog(defined: Mapping[str, Defined], own: Catalog) -> Catalog:
    """Own definitions, and those of others that are not among them. A view comes after what it
    reads; one that reads what nobody has is left out."""
    found: dict[str, Definition] = dict(own.definitions)
    views: list[Defined] = []
    for key, entry in defined.items():
        if key in found:
            continue
        if entry.kind in FED:
            found[key] = stream_of(entry)
        elif entry.kind == VIEW:
            views.append(entry)
        elif entry.kind == QUERY:
            found[key] = QueryDef(entry.name, Scan(_ELSEWHERE), entry.text)
        elif entry.kind == SINK:
            found[key] = SinkDef(entry.name, "", "")
    while views:
        waiting = []
        for view in views:
            try:
                script = compile_script(view.text, Catalog(found), name=_NAME)
                found.update(script.catalog.definitions)
            except CqlError:
                waiting.append(view)
        if len(waiting) == len(views):
            break
        views = waiting
    return Catalog(found)


def stream_of(entry: Defined) -> StreamDef:
    """A stream as the network knows it."""
    stream = _stream(entry.text)
    return replace(stream, name=entry.name) if entry.is_renamed else stream


@lru_cache(maxsize=4096)
def _stream(text: str) -> StreamDef:
    (stream,) = compile_script(text, name=_NAME).catalog.streams()
    return stream


def needed_views(texts: Iterable[str], defined: Mapping[str, Defined]) -> list[Defined]:
    """The network's views that texts read, each behind those that it reads itself."""
    found: dict[str, Defined] = {}

    def visit(text: str) -> None:
        for name in sorted(names_read(text)):
            entry = defined.get(name)
            if entry is not None and entry.kind == VIEW and name not in found:
                visit(entry.text)
                found[name] = entry

    for text in texts:
        visit(text)
    return list(found.values())
