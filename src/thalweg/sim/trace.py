"""What happened, as a hash that two equal runs share, and as lines for people on demand.

The hash covers time, place and content of every event from outside (messages, timers, calls) and
every switch of a machine. What happens inside a step follows from these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from thalweg.overlay.protocol import Address, Call, Event, Receive, TimerFired

_encode = msgspec.msgpack.Encoder().encode


class Trace:
    def __init__(self, show: Callable[[str], None] | None = None) -> None:
        self._hash = hashlib.blake2b(digest_size=8)
        self._show = show

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def event(self, now_us: int, address: Address, protocol: str, event: Event) -> None:
        self._hash.update(_encode((now_us, address, protocol, *_content(event))))
        if self._show is not None:
            self._show(f"{_clock(now_us)} {address:>6} {protocol}: {_in_words(event)}")

    def note(self, now_us: int, address: Address, what: str) -> None:
        self._hash.update(_encode((now_us, address, what)))
        if self._show is not None:
            self._show(f"{_clock(now_us)} {address:>6} *** {what}")


def _content(event: Event) -> tuple[object, ...]:
    if isinstance(event, Receive):
        return ("receive", event.sender, event.message)
    if isinstance(event, TimerFired):
        return ("timer", event.key)
    assert isinstance(event, Call)
    # Requests are values of any kind; their text is as good as they are.
    return ("call", repr(event.request))


def _in_words(event: Event) -> str:
    if isinstance(event, Receive):
        return f"{event.sender} says {event.message!r}"
    if isinstance(event, TimerFired):
        return f"timer {event.key}"
    assert isinstance(event, Call)
    return f"asked to {event.request!r}"


def _clock(now_us: int) -> str:
    return f"{now_us / 1_000_000:12.6f}s"
