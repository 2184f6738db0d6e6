"""Group commit: many writers, few transactions.

Whoever comes while a group is being written waits; the next writer takes all who wait along. So the
price of making something durable is paid once for all who came meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class _Waiting(Generic[T]):
    item: T
    is_done: bool = False
    error: BaseException | None = None


class GroupCommit(Generic[T]):
    """`write` makes a group durable, in its order, or raises and has done nothing."""

    def __init__(self, write: Callable[[Sequence[T]], None]) -> None:
        self._write = write
        self._changed = threading.Condition()
        self._waiting: list[_Waiting[T]] = []
        self._is_writing = False
        self._holder: int | None = None  # the thread that has all writing to itself

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Inside, what this thread submits is written at once, and others wait. For a thread that
        holds a transaction: it must not wait for one who waits for that."""
        with self._changed:
            while self._is_writing:
                self._changed.wait()
            self._is_writing, self._holder = True, threading.get_ident()
        try:
            yield
        finally:
            with self._changed:
                self._is_writing, self._holder = False, None
                self._changed.notify_all()

    def submit(self, item: T) -> None:
        """Returns when it is durable; raises what its writing has raised."""
        if self._holder == threading.get_ident():
            self._write([item])
            return
        mine = _Waiting(item)
        with self._changed:
            self._waiting.append(mine)
            while self._is_writing and not mine.is_done:
                self._changed.wait()
            if not mine.is_done:
                group, self._waiting = self._waiting, []
                self._is_writing = True
        if not mine.is_done:
            self._write_group(group)
        if mine.error is not None:
            raise mine.error

    def _write_group(self, group: list[_Waiting[T]]) -> None:
        try:
            self._write([w.item for w in group])
        except BaseException as error:
            if len(group) == 1:
                group[0].error = error
            else:
                self._write_each(group)  # one bad item is nobody else's fault
        finally:
            with self._changed:
                for waiting in group:
                    waiting.is_done = True
                self._is_writing = False
                self._changed.notify_all()

    def _write_each(self, group: list[_Waiting[T]]) -> None:
        for waiting in group:
            try:
                self._write([waiting.item])
            except BaseException as error:
                waiting.error = error
