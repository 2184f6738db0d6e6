"""Which views queries read whose plans are in their texts: placed, spread, over due rows.

Such a plan holds its views as they were. Their texts are written down beside the query, so that its
node sees when one has been replaced, also while it was away.
"""

from __future__ import annotations

import re

import msgspec

from thalweg.engine.shared.results.present import frontier_of
from thalweg.engine.site import Site
from thalweg.plan.catalog import QueryDef
from thalweg.plan.travelling import without_plan
from thalweg.plan.windows import FOREVER
from thalweg.runtime.network.definitions import needed_views
from thalweg.runtime.network.directory import VIEW, Defined
from thalweg.runtime.network.own_definitions import OwnDefinitions
from thalweg.runtime.network.placing.tasks import is_placed

_decode = msgspec.json.Decoder(dict[str, str]).decode


class ViewsRead:
    def __init__(self, site: Site, own: OwnDefinitions) -> None:
        self._site, self._own = site, own

    def write(self, query: str, text: str) -> None:
        """Of a query that is about to stand: the views that its user's text reads, as they are."""
        store = self._site.engine.store
        if found := {v.name.lower(): v.text for v in needed_views([text], self._known())}:
            store.write_note(_note(query), msgspec.json.encode(found))
        elif store.note(_note(query)) is not None:
            store.delete_note(_note(query))

    def behind(self) -> list[QueryDef]:
        """Queries over views as they were, that have something to say yet."""
        placed = [q for q in self._site.catalog.queries() if is_placed(q)]
        known = {k: v.text for k, v in self._known().items()} if placed else {}
        return [q for q in placed if self._is_behind(q, known)]

    def _is_behind(self, query: QueryDef, known: dict[str, str]) -> bool:
        note = self._site.engine.store.note(_note(query.name))
        if note is None or all(known.get(k, text) == text for k, text in _decode(note).items()):
            return False
        return frontier_of(self._site.engine, query.name) < FOREVER

    def _known(self) -> dict[str, Defined]:
        others = {k: d for k, d in self._own.elsewhere().items() if d.kind == VIEW}
        own = (v for v in self._site.catalog.views() if self._own.is_own(v))
        return others | {v.name.lower(): Defined(v.name, VIEW, v.text, "") for v in own}


def replaced_by_itself(query: QueryDef) -> str:
    """A statement that makes it anew of what its user has written."""
    return re.sub(r"^\s*create\b", "CREATE OR REPLACE", without_plan(query.text), flags=re.I)


def _note(query: str) -> str:
    return f"views/{query}"
