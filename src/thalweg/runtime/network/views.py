"""Views of other nodes: this one has copies of those that its statements read.

When a view is replaced where it stands, nodes that have copies replace these, and with them the
queries that read them.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping

from thalweg.cql import Script, compile_script
from thalweg.cql.bind.dependencies import dependents
from thalweg.engine.failures import FAILURES
from thalweg.engine.site import Site
from thalweg.plan.catalog import Catalog, QueryDef
from thalweg.runtime.data.statements import quoted
from thalweg.runtime.network.definitions import changed_views, needed_views, network_catalog
from thalweg.runtime.network.directory import QUERY, VIEW, Defined

log = logging.getLogger(__name__)

_LOOK_EVERY_S = 1.0
_AGAIN_AFTER_S = 15.0  # where a node is away, or what reads the view can't be replaced


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


def renewal(own: Catalog, elsewhere: Mapping[str, Defined]) -> tuple[str, Script] | None:
    """What replaces the copies that are not as their views are now, and the queries over them: a
    text, and what it comes to. Raises CqlError."""
    changed = changed_views(own, elsewhere)
    if not changed:
        return None
    text = "; ".join(
        re.sub(r"^\s*create\b", "CREATE OR REPLACE", v.text, flags=re.I) for v in changed
    )
    known = network_catalog(elsewhere, own).definitions
    # As the copies are; what others have over these views is for them to replace.
    before = {k: d for k, d in known.items() if k in own.definitions or not isinstance(d, QueryDef)}
    copies = {v.name.lower(): own.definitions[v.name.lower()] for v in changed}
    return text, compile_script(text, Catalog({**before, **copies}))


def told(
    script: Script, elsewhere: Mapping[str, Defined], me: str, placed: Iterable[QueryDef]
) -> tuple[str, ...]:
    """Of a text that replaces views: what goes over to them by itself, of others' queries and of
    those here whose plans hold views as they were."""
    names = (c.definition.name for c in script.changes if c.replaced is not None)
    found = (elsewhere.get(n.lower()) for n in names)
    others = [(d.name, d.node) for d in found if d is not None and d.kind == QUERY]
    here = [(q.name, me) for q in placed]
    return tuple(
        f"{q} at {n} goes over to it within seconds, as one piece" for q, n in others + here
    )


class Follower:
    """Looks for views that have been replaced elsewhere."""

    def __init__(self, renew: Callable[[], None]) -> None:
        self._renew, self._stop = renew, threading.Event()
        self._said = ""
        self._thread = threading.Thread(target=self._run, name="views", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        wait_s = _LOOK_EVERY_S
        while not self._stop.wait(wait_s):
            wait_s = _LOOK_EVERY_S
            try:
                self._renew()
            except FAILURES as error:
                wait_s = _AGAIN_AFTER_S
                if self._said != (said := str(error)):
                    self._said = said
                    log.warning("queries here go on over a view as it was: %s", said)
