"""Plans beside the texts, so that a start need not compile every query again.

The texts count; this is only what the present code makes of them. Plans of other code are not
looked at: a new version may plan an old query better. They are written in parcels, as queries
come. What a plan is made of is in its parcel: the text, the streams, and the views that stood
then. So a plan that is found is right, however often its query was dropped and made again.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import thalweg.plan
from thalweg.engine.shared.store import Store
from thalweg.engine.site.book import text_in_book
from thalweg.engine.site.scripts import Compiler
from thalweg.plan.catalog import Catalog, QueryDef, StreamDef
from thalweg.plan.nodes import Node

_TABLE = "CREATE TABLE IF NOT EXISTS compiled (code TEXT NOT NULL, packed BLOB NOT NULL)"
PARCEL = 5_000  # queries

Planned = tuple[Node, bool]  # plan, from now
Key = tuple[str, str]  # name, text as it stands in the book


class Compiled:
    def __init__(self, store: Store, compiler: Compiler) -> None:
        self._store = store
        self._code = _fingerprint(sys.modules[compiler.__module__])
        with store.transaction() as db:
            db.execute(_TABLE)

    def keep(self, queries: Iterable[QueryDef], catalog: Catalog) -> None:
        """In the transaction of their definitions."""
        found = list(queries)
        views = _views(catalog) if found else {}
        with self._store.transaction() as db:
            for first in range(0, len(found), PARCEL):
                plans: dict[Key, Planned] = {
                    (q.name, text_in_book(q, q.text)): (q.plan, q.from_now)
                    for q in found[first : first + PARCEL]
                }
                packed = _packed((views, plans))
                db.execute("INSERT INTO compiled VALUES (?, ?)", (self._code, packed))

    def plans(self, catalog: Catalog) -> dict[Key, Planned]:
        """What can be used over the streams and views that stand."""
        streams = {s.name: s for s in catalog.streams()}
        standing = _views(catalog)
        found: dict[Key, Planned] = {}
        for (packed,) in self._store.all("SELECT packed FROM compiled WHERE code = ?", self._code):
            try:
                views, plans = _Reader(io.BytesIO(packed), streams).load()
            except pickle.UnpicklingError:
                continue  # a stream has changed
            if all(standing.get(name) == text for name, text in views.items()):
                found |= plans
        return found

    def keep_only(self, queries: Iterable[QueryDef], catalog: Catalog) -> None:
        """Write all anew."""
        with self._store.transaction() as db:
            db.execute("DELETE FROM compiled")
            self.keep(queries, catalog)


def _views(catalog: Catalog) -> dict[str, str]:
    return {v.name: v.text for v in catalog.views()}


@cache
def _fingerprint(language: ModuleType) -> str:
    """Of the code that makes plans of texts."""
    digest = hashlib.blake2b(sys.version.encode(), digest_size=12)
    for module in (language, thalweg.plan):
        assert module.__file__ is not None
        for file in sorted(Path(module.__file__).parent.rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


# --- streams are not copied into every parcel: they stand for themselves


class _Writer(pickle.Pickler):
    def persistent_id(self, obj: Any) -> tuple[str, int] | None:
        return (obj.name, _stream_digest(obj)) if isinstance(obj, StreamDef) else None


class _Reader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, streams: Mapping[str, StreamDef]) -> None:
        super().__init__(file)
        self._streams = streams

    def persistent_load(self, pid: tuple[str, int]) -> StreamDef:
        name, digest = pid
        stream = self._streams.get(name)
        if stream is None or _stream_digest(stream) != digest:
            raise pickle.UnpicklingError(f"{name} is not what it was")
        return stream


@cache
def _stream_digest(stream: StreamDef) -> int:
    text = repr(stream).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def _packed(parcel: tuple[dict[str, str], dict[Key, Planned]]) -> bytes:
    file = io.BytesIO()
    _Writer(file, protocol=pickle.HIGHEST_PROTOCOL).dump(parcel)
    return file.getvalue()
