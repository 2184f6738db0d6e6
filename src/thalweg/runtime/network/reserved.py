"""Names and sources of what nodes make for themselves: no user's definition may have them."""

from __future__ import annotations

from thalweg.engine.shared.registering import NameTaken
from thalweg.engine.shared.state.names import ENGINE_FED, LABELLED, PUBLISHED
from thalweg.engine.site.publications import MIRRORS
from thalweg.engine.site.scripts import Script
from thalweg.plan.catalog import StreamDef
from thalweg.runtime.data.fragments import NAMED
from thalweg.runtime.data.statements import PEERS
from thalweg.runtime.network.labels.labels import DUE
from thalweg.runtime.swap.definitions import JOINED

_NAMES = (PUBLISHED, NAMED, JOINED, DUE)
_SOURCES = (MIRRORS, ENGINE_FED, LABELLED, PEERS)


def check_not_reserved(script: Script) -> None:
    """Streams that nodes have made for users stay what they are. Raises NameTaken."""
    for change in script.changes:
        definition = change.definition
        for own in _NAMES:
            if definition.name.lower().startswith(own):
                raise NameTaken(f"names that begin with {own} are the network's own")
        if change.dropped or not isinstance(definition, StreamDef):
            continue
        before = change.replaced.source if isinstance(change.replaced, StreamDef) else None
        source = definition.source
        for own in _SOURCES:
            if source not in (None, before) and str(source).lower().startswith(own):
                raise NameTaken(
                    f"{definition.name}: what comes FROM '{own}…' is fed by nodes themselves: read "
                    "a stream of another node by its name"
                )
