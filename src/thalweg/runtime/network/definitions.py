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
    reads; one that reads what nobody has is left out. A copy of a view that has been replaced where
    it stands counts for nothing."""
    found: dict[str, Definition] = dict(own.definitions)
    for view in changed_views(own, defined):
        del found[view.name.lower()]
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
    # A definition stands behind what it reads, and a copy where it stood.
    return Catalog({k: found[k] for k in (*own.definitions, *found) if k in found})


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


def changed_views(own: Catalog, defined: Mapping[str, Defined]) -> list[Defined]:
    """Views of others of which there are copies here that are not as those are now; each behind
    those that it reads itself."""
    changed = {
        key: entry
        for view in own.views()
        if (entry := defined.get(key := view.name.lower())) is not None
        and entry.kind == VIEW
        and entry.text != view.text
    }
    # A view of another node that had the name before is what a copy may be of.
    renamed = {d.own_name.lower() for d in defined.values() if d.is_renamed} if changed else set()
    ordered: dict[str, Defined] = {}
    for key, entry in changed.items():
        for each in (*needed_views([entry.text], defined), entry):
            if (name := each.name.lower()) in changed and name not in renamed:
                ordered[name] = each
        assert key in ordered or key in renamed
    return list(ordered.values())
