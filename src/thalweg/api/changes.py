"""What a script has done, told by kind and name."""

from __future__ import annotations

from typing import Any

from thalweg.engine.site.book import kind_of
from thalweg.engine.site.scripts import Change, Script
from thalweg.plan.catalog import StreamDef


def verb_of(change: Change) -> str:
    if change.dropped:
        return "dropped"
    if change.replaced is None:
        return "created"
    if change.replaced is change.definition:
        return "kept"
    return "altered" if isinstance(change.definition, StreamDef) else "replaced"


def changes_json(script: Script) -> list[dict[str, Any]]:
    """One for each definition that is not as it was."""
    return [
        {"did": verb_of(c), "kind": kind_of(c.definition), "name": c.definition.name}
        for c in script.changes
        if verb_of(c) != "kept"
    ]
