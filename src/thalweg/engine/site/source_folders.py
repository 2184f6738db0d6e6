"""What sources keep for themselves: a folder for each stream, which goes with it.

A stream that is dropped and created again is another one: its source must not go on where the
first one's was. So folders are numbered, and which one is a stream's own is in the book: after a
crash in the middle of DROP, what is left of a folder is nobody's.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from thalweg.engine.shared.state.names import source_folder
from thalweg.engine.shared.state.store import Store


def begin(store: Store, stream: str) -> None:
    """A new stream; part of the transaction that creates it."""
    store.write_note(_note(stream), str(store.next_number("sources")).encode())


def end(store: Store, stream: str) -> None:
    """Its stream is dropped, in this transaction."""
    store.delete_note(_note(stream))


def folder_of(store: Store, stream: str) -> Path:
    number = store.note(_note(stream))  # none in data directories that are older than numbers
    return store.folder / source_folder(stream, None if number is None else int(number))


def sweep(store: Store, streams: Iterable[str]) -> None:
    """Remove the folders that belong to none of these streams."""
    own = {folder_of(store, s) for s in streams}
    for path in (store.folder / "sources").glob("*"):
        if path not in own:
            shutil.rmtree(path, ignore_errors=True)


def _note(stream: str) -> str:
    return f"source/{stream}"
