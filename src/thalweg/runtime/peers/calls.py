"""Calls to a node's protocols, from any thread; and what is read of them between two steps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.p2p.index import Index
from thalweg.overlay.p2p.results import Results
from thalweg.overlay.p2p.streams import Streams
from thalweg.overlay.query_spreading import QuerySpreading
from thalweg.overlay.stack import Stack
from thalweg.runtime.driver.driver import Driver

_ANSWER_S = 30.0  # of the node itself
_LOOK_EVERY_S = 0.2

T = TypeVar("T")


class Calls:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._news = threading.Condition()  # of what is waited for

    @property
    def address(self) -> str:
        return self._driver.address

    def _wait(
        self, is_so: Callable[[], bool], within_s: float, meanwhile: Callable[[], None]
    ) -> bool:
        """`meanwhile` asks again, now and then."""
        until = time.monotonic() + within_s
        while not is_so():
            if time.monotonic() > until:
                return False
            meanwhile()
            with self._news:
                if not is_so():
                    self._news.wait(_LOOK_EVERY_S)
        return True

    def _call(self, protocol: str, request: object) -> tuple[object, ...]:
        return self._driver.call(protocol, request).result(_ANSWER_S)

    def on(self, protocol: str, listener: Callable[[object], None]) -> None:
        self._driver.on(protocol, listener)

    def read(self, function: Callable[[Stack], T]) -> T:
        return self._driver.read(function)


def index_of(stack: Stack) -> Index:
    found = stack["p2p-index"]
    assert isinstance(found, Index)
    return found


def results_of(stack: Stack) -> Results:
    found = stack["p2p-results"]
    assert isinstance(found, Results)
    return found


def streams_of(stack: Stack) -> Streams:
    found = stack["p2p-streams"]
    assert isinstance(found, Streams)
    return found


def chord_of(stack: Stack) -> Chord:
    found = stack["chord"]
    assert isinstance(found, Chord)
    return found


def spreading_of(stack: Stack) -> QuerySpreading:
    found = stack["query-spreading"]
    assert isinstance(found, QuerySpreading)
    return found
