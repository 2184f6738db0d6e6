"""Reading ahead: the next items are made while the last one is used."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from typing import TypeVar

T = TypeVar("T")

_POLL_S = 0.1


def ahead(items: Iterator[T], most: int) -> Generator[T, None, None]:
    """The same items in the same order, up to `most` of them made in advance by a thread.

    An error of theirs is raised here, behind the items that came before it.
    """
    waiting: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(most)
    is_over = threading.Event()

    def put(item: T | None, error: BaseException | None) -> None:
        while not is_over.is_set():
            try:
                waiting.put((item, error), timeout=_POLL_S)
                return
            except queue.Full:
                continue

    def make() -> None:
        try:
            for item in items:
                put(item, None)
                if is_over.is_set():
                    return
            put(None, StopIteration())
        except BaseException as error:
            put(None, error)

    thread = threading.Thread(target=make, name="reading-ahead", daemon=True)
    thread.start()
    try:
        while True:
            item, error = waiting.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item  # type: ignore[misc]
    finally:
        is_over.set()
        thread.join()
