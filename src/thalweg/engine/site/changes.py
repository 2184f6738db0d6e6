"""Waiting for ticks, and for changes of the catalog.

Who waits for one query is woken only if that has gone on, and so are not more at once than can be
of use: a thousand threads that look up together spend more on waiting for each other (Python runs
one at a time) than on what there is to read. The others follow as soon as one has read.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from enum import Enum, auto

from thalweg.plan.windows import FOREVER

AT_ONCE = 4  # who wait for queries and have been woken


class _State(Enum):
    WAITING = auto()
    DUE = auto()  # it is woken when others have read
    WOKEN = auto()
    GONE = auto()


class _Waiting:
    """Somebody who has all that a query has said before an instant."""

    __slots__ = ("query", "since", "state", "woken")

    def __init__(self, query: str, since: int) -> None:
        self.query, self.since = query, since
        self.state = _State.WAITING
        self.woken = threading.Lock()
        self.woken.acquire()


class Turn:
    """Who has it may look; `over` is to be called as soon as that is done, so that others may."""

    def __init__(self, over: Callable[[], None] | None = None) -> None:
        self._over = over

    def over(self) -> None:
        over, self._over = self._over, None
        if over is not None:
            over()


class Changes:
    """Counts ticks and changes of the catalog."""

    def __init__(self, reached: Callable[[str], int] = lambda _: FOREVER) -> None:
        """`reached` is the instant up to which a query's result is final."""
        self._changed = threading.Condition()
        self._changes = self._told = 0
        self._reached = reached
        self._turns = threading.Lock()
        self._waiting: dict[_Waiting, None] = {}  # in order of arrival
        self._due: deque[_Waiting] = deque()
        self._at_it = 0  # who have been woken, and are not done

    def tell(self) -> None:
        """Anything may be different."""
        self._told += 1
        self._tell(lambda _: True)

    def ticked(self) -> None:
        """Queries may have gone on."""
        self._tell(lambda waiting: self._reached(waiting.query) > waiting.since)

    def _tell(self, is_due: Callable[[_Waiting], bool]) -> None:
        with self._changed:
            self._changes += 1
            self._changed.notify_all()
        with self._turns:
            waiting = list(self._waiting)
        due = [w for w in waiting if is_due(w)]
        with self._turns:
            for one in due:
                if one.state is _State.WAITING:
                    del self._waiting[one]
                    one.state = _State.DUE
                    self._due.append(one)
            self._wake()

    # --- for the next change, whatever it is

    @property
    def count(self) -> int:
        """Take it before looking for rows, then `wait` for the next."""
        return self._changes

    def wait(self, seen: int, timeout_s: float) -> bool:
        """Until something has changed since `seen`; whether it did in time."""
        until = time.monotonic() + timeout_s
        with self._changed:
            while self._changes == seen:
                left = until - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
            return True

    # --- for one query

    @property
    def told(self) -> int:
        """Take it before looking for rows, then `wait_for` the next."""
        return self._told

    def wait_for(self, query: str, since: int, seen: int, timeout_s: float) -> Turn | None:
        """Until a query has gone on from an instant, or anything but ticks has changed since
        `seen`; None if neither came in time."""
        mine = _Waiting(query, since)
        with self._turns:
            self._waiting[mine] = None
        # Behind the registration, so that nothing slips in between.
        if self._told != seen or self._reached(query) > since:
            return self._leave(mine) or Turn()
        mine.woken.acquire(timeout=timeout_s)
        return self._leave(mine)

    def turn(self) -> Turn:
        """Once few enough are at it: for who looks without having waited."""
        mine = _Waiting("", FOREVER)
        with self._turns:
            mine.state = _State.DUE
            self._due.append(mine)
            self._wake()
        mine.woken.acquire()
        return Turn(self._done)

    def _leave(self, mine: _Waiting) -> Turn | None:
        with self._turns:
            state, mine.state = mine.state, _State.GONE
            self._waiting.pop(mine, None)
        if state is _State.WOKEN:
            return Turn(self._done)
        return Turn() if state is _State.DUE else None

    def _done(self) -> None:
        with self._turns:
            self._at_it -= 1
            self._wake()

    def _wake(self) -> None:
        while self._due and self._at_it < AT_ONCE:
            one = self._due.popleft()
            if one.state is _State.DUE:
                one.state = _State.WOKEN
                self._at_it += 1
                one.woken.release()
