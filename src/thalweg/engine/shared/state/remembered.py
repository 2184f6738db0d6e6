"""Answers of the book that many readers ask for: kept for as long as the book says the same.

A thousand readers of one group ask for the same few rows after each tick, and the book has one
connection. Whoever changes a table says so inside of the transaction; others can only read the
table again when that has ended, so that nothing old is kept as new. A transaction that was taken
back says so, too: the one who was inside may have looked.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

V = TypeVar("V")

MOST = 50_000  # answers; then all are forgotten


class Remembered:
    """May be asked by any thread, without waiting for another."""

    def __init__(self) -> None:
        self._version = 0
        self._known: dict[Hashable, tuple[int, Any]] = {}

    def changed(self) -> None:
        self._version += 1
        self._known = {}

    def get(self, question: Hashable, answer: Callable[[], V]) -> V:
        version = self._version  # before looking: what is changed meanwhile is asked for again
        known = self._known.get(question)
        if known is not None and known[0] == version:
            found: V = known[1]
            return found
        found = answer()
        if len(self._known) >= MOST:
            self._known = {}
        self._known[question] = version, found
        return found
