"""Views of other nodes: this one has copies of those that its statements read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from thalweg.cql.bind.dependencies import dependents
from thalweg.engine.site import Site
from thalweg.runtime.data.statements import quoted
from thalweg.runtime.network.definitions import needed_views
from thalweg.runtime.network.directory import VIEW, Defined


def views_for(site: Site, texts: Iterable[str], elsewhere: Mapping[str, Defined]) -> Iterator[str]:
    """Views of others that texts read, as they are now."""
    if not any(d.kind == VIEW for d in elsewhere.values()):
        return
    copies = {v.name.lower(): v for v in site.catalog.views()}
    for view in needed_views(texts, elsewhere):
        copy = copies.get(view.name.lower())
        if copy is None:
            yield view.text
        elif copy.text != view.text and not dependents(copy, site.catalog):
            yield f"DROP VIEW {quoted(view.name)}; {view.text}"


def drop_unused_views(site: Site, elsewhere: Mapping[str, Defined]) -> None:
    """Copies that nothing reads any more."""
    for view in reversed(site.catalog.views()):
        is_copy = view.name.lower() in elsewhere
        if is_copy and not dependents(view, site.catalog):
            site.execute(f"DROP VIEW {quoted(view.name)}")
