"""Questions that are out: each has a token, and a time by which its answer must have come.

Messages may be lost, doubled and late. So an answer counts once, and only while it is waited for;
where none comes in time, the asker's timer fires.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from thalweg.overlay.protocol import CancelTimer, SetTimer

T = TypeVar("T")


class Questions(Generic[T]):
    """Timers have the keys (name, token); T is what the asker must know to go on."""

    __slots__ = ("_name", "_open", "_tokens", "_within_us")

    def __init__(self, name: str, within_us: int) -> None:
        self._name = name
        self._within_us = within_us
        self._open: dict[int, T] = {}
        self._tokens = 0

    def ask(self, about: T) -> tuple[int, SetTimer]:
        self._tokens += 1
        self._open[self._tokens] = about
        return self._tokens, SetTimer((self._name, self._tokens), self._within_us)

    def answered(self, token: int) -> tuple[T, CancelTimer] | None:
        """None: nobody waits for it (any more)."""
        if token not in self._open:
            return None
        return self._open.pop(token), CancelTimer((self._name, token))

    def unanswered(self, token: int) -> T:
        return self._open.pop(token)
