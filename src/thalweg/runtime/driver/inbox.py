"""What waits for its step: timers that are due, messages, and what other threads ask for.

Messages and requests each have a queue of their own, and each gets half of the steps while both
wait: neither thousands of requests nor a flood of messages keeps a ping waiting, or a request.
Messages beyond a limit are dropped, the newest first: a node that can't keep up tells nobody else
to wait, and protocols tolerate loss. Requests of this node's own threads are never dropped.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from thalweg.overlay.driving import Timer
from thalweg.overlay.protocol import Address, Message
from thalweg.overlay.stack import Stack


@dataclass(frozen=True, slots=True)
class Mail:
    sender: Address
    protocol: str
    message: Message


@dataclass(frozen=True, slots=True)
class Asked:
    """A Call; its answer is what the protocol delivered in that very step."""

    protocol: str
    request: object
    answer: Future[tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Reading:
    function: Callable[[Stack], Any]
    answer: Future[Any]


@dataclass(frozen=True, slots=True)
class Leaving:
    answer: Future[None]


Request = Asked | Reading | Leaving
Item = Mail | Request


class Inbox:
    def __init__(self, most_mail: int) -> None:
        self.dropped = 0  # messages that found it full
        self._most_mail = most_mail
        self._mail: deque[Mail] = deque()
        self._requests: deque[Request] = deque()
        self._changed = threading.Condition()
        self._closed = False
        # Of the driver's thread alone; equal times in the order in which they were set.
        self._timers: list[tuple[int, int, Timer]] = []
        self._settings = 0

    def __len__(self) -> int:
        return len(self._mail) + len(self._requests)

    def put(self, item: Item) -> bool:
        """False if it is closed."""
        with self._changed:
            if self._closed:
                return False
            if not isinstance(item, Mail):
                self._requests.append(item)
            elif len(self._mail) < self._most_mail:
                self._mail.append(item)
            else:
                self.dropped += 1
            self._changed.notify()
        return True

    def put_back(self, items: list[Item]) -> None:
        """In front, in their order: taken, and not attended to."""
        with self._changed:
            self._mail.extendleft(i for i in reversed(items) if isinstance(i, Mail))
            self._requests.extendleft(i for i in reversed(items) if not isinstance(i, Mail))

    def close(self) -> list[Request]:
        """Nothing comes in any more; gives the requests that were left."""
        with self._changed:
            self._closed = True
            rest = list(self._requests)
            self._requests.clear()
            self._mail.clear()
            self._changed.notify()
        return rest

    def wake_at(self, due_us: int, timer: Timer) -> None:
        self._settings += 1
        heapq.heappush(self._timers, (due_us, self._settings, timer))

    def forget_timers(self) -> None:
        self._timers.clear()

    def take(self, clock: Callable[[], int], most: int) -> tuple[list[Timer], list[Item]] | None:
        """Timers that are due, and at most so many items; waits for either. None: closed."""
        while True:
            now_us = clock()
            due = self._due(now_us)
            with self._changed:
                if self._closed:
                    return None
                items = self._next(most)
                if due or items:
                    return due, items
                wait_s = None
                if self._timers:
                    wait_s = max(0, self._timers[0][0] - clock()) / 1e6
                self._changed.wait(wait_s)

    def _next(self, most: int) -> list[Item]:
        requests = min(len(self._requests), max(most - len(self._mail), most // 2))
        mail = min(len(self._mail), most - requests)
        taken: list[Item] = [self._mail.popleft() for _ in range(mail)]
        taken += [self._requests.popleft() for _ in range(requests)]
        return taken

    def _due(self, now_us: int) -> list[Timer]:
        found = []
        while self._timers and (self._timers[0][0] <= now_us or not self._timers[0][2].is_set):
            timer = heapq.heappop(self._timers)[2]
            if timer.is_set:
                found.append(timer)
        return found
