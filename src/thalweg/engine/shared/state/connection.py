"""What the parts of the book see of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec


class Connection(Protocol):
    def all(self, sql: str, *values: Any) -> list[tuple[Any, ...]]: ...

    def transaction(self) -> AbstractContextManager[sqlite3.Connection]: ...

    def tick(self) -> tuple[int, bytes | None]: ...


LISTED = "(SELECT value FROM json_each(?))"  # any number of names or numbers in one parameter


def listed(names: Iterable[str | int]) -> str:
    return msgspec.json.encode(list(names)).decode()
