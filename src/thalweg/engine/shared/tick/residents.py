"""The driver's side of resident tasks: small ticks without a Spark job each.

A resident is one long Spark job of one task, whose Python worker waits for ticks on a socket. So a
tick costs a round trip in place of Spark's scheduling. The rules:

- Residents never hold all slots: whatever else runs on Spark would starve, or wait for ever where a
  sink's own job is part of a tick. A tick that wants more tasks than may stay lets all of them go.
- Each launch has a number of its own and each tick an epoch. Spark may try a lost task again inside
  the same job: only the newest attempt counts, and answers to other epochs are nobody's.
- A resident that is lost (a killed worker shows as the end of its channel) loses nothing: what it
  wrote is listed nowhere. The tick runs as a job, and a later one finds a fresh resident.
- A resident goes by itself when it has had nothing to do for a while.
"""

from __future__ import annotations

import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from thalweg.engine.shared.tick.resident_channel import Channel, Gone, Kind, Message
from thalweg.engine.shared.tick.resident_task import SHARE_BYTES, Post

log = logging.getLogger(__name__)

IDLE_S = 10.0  # without a tick, after which a resident gives its slot back
START_S = 0.3  # for a resident to report; then ticks run as jobs until it does
_LOOK_AT_SLOTS_S = 1.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0  # before residents are tried again after a loss

Launch = Callable[[Post], None]  # runs a resident's job to its end


class NoResidents(Exception):
    """Why a tick has to run as a job."""


class TaskFailed(RuntimeError):
    """A tick failed inside a resident; the text is its traceback."""


@dataclass(eq=False)
class _Seat:
    """A launched resident, and the channel of its newest attempt."""

    number: int
    launched_at: float
    attempt: int = -1
    channel: Channel | None = None
    process: int | None = None


class Residents:
    """`slots` tells how many tasks can run at once. `host` is where executors find the driver, and
    `bind` where it listens."""

    def __init__(
        self,
        launch: Launch,
        slots: Callable[[], int],
        *,
        host: str = "127.0.0.1",
        bind: str | None = None,
        idle_s: float = IDLE_S,
    ) -> None:
        self._launch, self._slots = launch, slots
        self._host, self._bind, self._idle_s = host, bind or host, idle_s
        self._secret = secrets.token_bytes(32)
        self._one_tick = threading.Lock()
        self._changed = threading.Condition()
        self._seats: list[_Seat] = []
        self._listener: socket.socket | None = None
        self._launched = self._epoch = self.ticks = 0
        self._most, self._looked_at = 0, -_LOOK_AT_SLOTS_S
        self._losses, self._not_before = 0, 0.0

    def run(self, packed: bytes, shares: int) -> list[bytes]:
        """A tick's reports, one of each share. Raises NoResidents where nobody can run it here, and
        TaskFailed where it failed."""
        if not self._one_tick.acquire(blocking=False):
            raise NoResidents("they run a tick of somebody else's")
        try:
            answers = self._ask(packed, shares)
        finally:
            self._one_tick.release()
        for answer in answers:
            if answer.kind is Kind.FAILED:
                raise TaskFailed(answer.body.decode())
        return [answer.body for answer in answers]

    def processes(self) -> list[int]:
        """Of the workers that wait for ticks, on whichever machine."""
        with self._changed:
            return [s.process for s in self._seats if s.process is not None]

    def release(self) -> None:
        """Let all go: their slots are free as soon as they notice."""
        with self._changed:
            seats, self._seats = self._seats, []
        for seat in seats:
            if seat.channel is not None:
                seat.channel.close()

    def close(self) -> None:
        """Let all go and hear no more; another tick begins anew."""
        self.release()
        with self._changed:
            listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    # --- a tick

    def _ask(self, packed: bytes, shares: int) -> list[Message]:
        most = self._at_most()
        if max(shares, len(self._seats)) > most:
            self.release()
        if shares > most:
            raise NoResidents(f"{shares} of at most {most} that may stay")
        if time.monotonic() < self._not_before:
            raise NoResidents("one was lost a moment ago")
        channels = self._channels(shares)
        self._epoch += 1
        try:
            for share, channel in enumerate(channels):
                body = share.to_bytes(SHARE_BYTES) + packed
                channel.send(Message(Kind.RUN, self._epoch, body))
            answers = [self._answer(channel) for channel in channels]
        except Gone as error:
            log.warning("a resident task was lost (%s): its tick runs as a job", error)
            raise self._lost(str(error)) from None
        self._losses = 0
        self.ticks += 1
        return answers

    def _answer(self, channel: Channel) -> Message:
        while True:
            message = channel.receive()
            if message is not None and message.epoch == self._epoch:
                return message

    def _at_most(self) -> int:
        """One slot is always left to others."""
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_AT_SLOTS_S:
            self._looked_at = now
            try:
                self._most = self._slots() - 1
            except Exception as error:  # Spark is gone: the job will tell
                log.debug("slots are not known: %s", error)
                self._most = 0
        return self._most

    def _lost(self, reason: str) -> NoResidents:
        """After a loss, nobody is waited for at every tick."""
        self.release()
        pause = min(_FIRST_PAUSE_S * 2**self._losses, _LONGEST_PAUSE_S)
        self._losses += 1
        self._not_before = time.monotonic() + pause
        return NoResidents(reason)

    # --- who is there

    def _channels(self, count: int) -> list[Channel]:
        """Of so many residents; launches those that are missing."""
        with self._changed:
            for seat in self._seats:
                if seat.channel is not None and not seat.channel.is_open():
                    seat.channel.close()
                    seat.channel = None
                    # Spark tries it again, or has let it end: a new one is not slower than either.
                    self._seats = [s for s in self._seats if s is not seat]
            for _ in range(count - len(self._seats)):
                self._start()
            chosen = self._seats[:count]
            # A worker that has to load its libraries first is not worth waiting for.
            patience_s = chosen[-1].launched_at + START_S - time.monotonic()
            self._changed.wait_for(
                lambda: all(s.channel or s not in self._seats for s in chosen), patience_s
            )
            found = [s.channel for s in chosen if s.channel is not None]
            are_coming = all(s in self._seats for s in chosen)
        if len(found) == count:
            return found
        reason = f"{len(found)} of {count} have reported"
        raise NoResidents(reason) if are_coming else self._lost(reason)

    def _start(self) -> None:
        self._listen()
        assert self._listener is not None
        seat = _Seat(self._launched, time.monotonic())
        self._launched += 1
        self._seats.append(seat)
        address = (self._host, self._listener.getsockname()[1])
        post = Post(address, self._secret, seat.number, self._idle_s)
        name = f"resident-{seat.number}"
        threading.Thread(target=self._follow, args=(seat, post), name=name, daemon=True).start()

    def _follow(self, seat: _Seat, post: Post) -> None:
        """A resident's job, from its start to its end."""
        reason = "its task ended"
        try:
            self._launch(post)
        except Exception as error:
            reason = _reason(error)
        with self._changed:
            was_wanted = seat in self._seats
            self._seats = [s for s in self._seats if s is not seat]
            self._changed.notify_all()
        if seat.channel is not None:
            seat.channel.close()  # wakes a tick that waits for an answer
        elif was_wanted:
            log.warning("a resident task did not reach its driver: %s", reason)

    # --- the door

    def _listen(self) -> None:
        if self._listener is None:
            family, *_, address = socket.getaddrinfo(self._bind, 0, type=socket.SOCK_STREAM)[0]
            self._listener = socket.create_server(address[:2], family=family)
            args = (self._listener,)
            threading.Thread(target=self._accept, args=args, name="residents", daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connected, _ = listener.accept()
            except OSError:
                return  # closed
            # Each on a thread of its own: a stranger that says nothing must not hold up others.
            threading.Thread(target=self._let_in, args=(connected,), daemon=True).start()

    def _let_in(self, connected: socket.socket) -> None:
        channel = Channel(connected)
        try:
            hello = channel.welcome(self._secret)
        except Gone as error:
            log.debug("turned away: %s", error)
            channel.close()
            return
        with self._changed:
            seat = next((s for s in self._seats if s.number == hello.number), None)
            if seat is None or hello.attempt <= seat.attempt:
                channel.close()  # let go meanwhile, or an attempt that Spark has given up
                return
            before, seat.channel = seat.channel, channel
            seat.attempt, seat.process = hello.attempt, hello.process
            self._changed.notify_all()
        if before is not None:
            before.close()


def _reason(error: Exception) -> str:
    """Of a job's failure, which comes as text, the line that names it."""
    said = [x for x in str(error).splitlines() if x and not x[0].isspace()]
    named = [x for x in said if "Error" in x or "Exception" in x]
    return (named or said or [type(error).__name__])[-1]
