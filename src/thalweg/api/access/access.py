"""Whose request it is, and whether its rows are still within the user's limit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from thalweg.runtime.trust import Budget, Denied, User, UsersFile

_HOW = "send `Authorization: Bearer TOKEN`; the commands take it from THALWEG_TOKEN"


class TooFast(Exception):
    """Rows beyond what a user may push; with when to try again."""

    def __init__(self, why: str, retry_after_s: float) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


class Access:
    """Of any thread."""

    def __init__(self, users: UsersFile, clock_s: Callable[[], float] = time.monotonic) -> None:
        self.users, self._clock_s = users, clock_s
        self._budgets: dict[tuple[str, float | None], Budget] = {}
        self._lock = threading.Lock()

    def user(self, authorization: str | None) -> User:
        """By a request's header. Raises Denied; TrustError if nobody can be let in."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            self.users.load()
            raise Denied(f"a token is needed: {_HOW}", is_known=False)
        return self.users.authenticate(token.strip())

    def take(self, user: User, rows: int) -> None:
        """So many rows are about to be pushed. Raises TooFast, Denied."""
        rate = user.limits.rows_per_s
        if rate is None or not rows:
            return
        with self._lock:
            budget = self._budgets.setdefault((user.name, rate), Budget(rate))
            wait_s = budget.take(rows, self._clock_s())
        if wait_s == float("inf"):
            raise Denied(f"{user.name} may not push rows", is_known=True)
        if wait_s > 0:
            raise TooFast(f"{user.name} may push {rate:g} rows/s: nothing was taken", wait_s)
