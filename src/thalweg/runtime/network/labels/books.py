"""Where the home of streams keeps their books, and what has passed for their classes."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from thalweg.engine.shared.state.store import Store
from thalweg.runtime.network.labels.book import Book, Generation, decode, encode


class Books:
    """`lock` is held while one is read and changed."""

    def __init__(self) -> None:
        self._store: Store | None = None
        self.lock = threading.RLock()
        self._known: dict[str, Book] = {}

    def attach(self, store: Store) -> None:
        self._store = store

    @property
    def _attached(self) -> Store:
        assert self._store is not None, "the node has not begun"
        return self._store

    def has(self, due: str) -> bool:
        return self._attached.note(_book(due)) is not None

    def of(self, due: str) -> Book:
        with self.lock:
            if due not in self._known:
                note = None if self._store is None else self._store.note(_book(due))
                if note is None:
                    return Book()
                self._known[due] = decode(note)
            return self._known[due]

    def write(self, due: str, book: Book) -> None:
        with self.lock:
            self._attached.write_note(_book(due), encode(book))
            self._known[due] = book

    def forget(self, due: str) -> None:
        with self.lock:
            self.forget_passed(due, self.of(due).generations)
            self._attached.delete_note(_book(due))
            self._known.pop(due, None)

    # --- what has passed by the last time that it was written down

    def passed(self, due: str, generation: Generation) -> bytes | None:
        return self._attached.note(_passed(due, generation))

    def write_passed(self, due: str, generation: Generation, packed: bytes) -> None:
        self._attached.write_note(_passed(due, generation), packed)

    def forget_passed(self, due: str, generations: Iterable[Generation]) -> None:
        for generation in generations:
            self._attached.delete_note(_passed(due, generation))


def _book(due: str) -> str:
    return f"labels/{due}/book"


def _passed(due: str, generation: Generation) -> str:
    # A publication's name is never used again, unlike a stream's.
    return f"labels/{due}/passed/{generation.publication}/{generation.name}"
