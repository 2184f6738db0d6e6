"""The live driver of one node's stack: the twin of `sim/world.py`, in real time.

- *One step at a time*, on one thread. Other threads `call`, `read` and listen (`on`).
- *Durable first*: what a step persists is committed before anything that it or a later step sends,
  delivers or answers leaves. Steps that queue up share a commit. A disk that refuses is tried again
  for as long as it takes; until then nothing leaves, and to the others the node is down.
- *Time* is the wall clock's at the start and then monotonic, and never behind the clock of the last
  commit: as in the simulator, a node's clock does not run backwards, not even over a restart.
- *A step that raises* is a bug of one protocol, and its memory may be half changed. So the driver
  does what the protocols are proven to survive: it lets the stack crash and starts a new one with
  what was persisted, at once the first time and after growing pauses if it goes on. Neither the
  failed step's effects nor its event remain; the caller of a Call gets the exception; what else
  waited is kept.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from thalweg.engine.shared.state.remote.objects import Objects
from thalweg.engine.supervised import SupervisedThread
from thalweg.overlay.driving import Machine, Timer, carry_out
from thalweg.overlay.protocol import (
    Address,
    Call,
    Deliver,
    Event,
    Message,
    Persist,
    Receive,
    TimerFired,
)
from thalweg.overlay.stack import Effects, Stack
from thalweg.runtime.driver.deliveries import Callback, Deliveries
from thalweg.runtime.driver.errors import DriverClosed, DriverError
from thalweg.runtime.driver.inbox import Asked, Inbox, Item, Leaving, Mail, Reading, Request
from thalweg.runtime.driver.pending import Pending
from thalweg.runtime.driver.post import Post
from thalweg.runtime.driver.store import Store

log = logging.getLogger(__name__)

T = TypeVar("T")

MOST_MAIL = 20_000  # messages that wait for their step
STEPS_A_COMMIT = 256  # at most: nobody waits for long
LONGEST_PAUSE_S = 30.0  # before another start of a stack that keeps failing
CALM_S = 60.0  # after so long without a failure the next one counts as the first


@dataclass(frozen=True, slots=True)
class Health:
    """What an operator wants to know about a driver."""

    is_up: bool
    lives: int
    steps: int
    waiting: int  # for their step
    undelivered: int  # deliveries that the application has not taken yet
    dropped: int  # messages that came while too many waited
    failures: int  # steps that raised
    last_failure: str | None
    disk: str | None  # why commits fail at present


class Driver:
    """`build` makes the node's stack, new and empty: at the start and after each failed step."""

    def __init__(
        self,
        build: Callable[[], Stack],
        *,
        post: Post,
        folder: Path,
        seed: int | None = None,
        copy: Objects | None = None,
    ) -> None:
        """`copy` is where what protocols persist is kept, too."""
        self.address: Address = post.address
        self._build = build
        self._post = post
        self._store = Store(folder, self.address, copy)
        self._seed = secrets.randbits(64) if seed is None else seed
        self._machine = Machine(self.address, lives=self._store.lives)
        self._inbox = Inbox(MOST_MAIL)
        self._deliveries = Deliveries(self.address)
        self._stop = threading.Event()
        self._thread = SupervisedThread(
            f"{self.address} protocols", self._live, stop=self._stop, failed=self._failed
        )
        wall_us = time.time_ns() // 1000
        self._ahead_us = max(wall_us, self._store.clock_us) - time.monotonic_ns() // 1000
        self._pending = Pending(self._store, self._stop)
        self._now_us = 0  # of the present step
        self._steps = 0
        self._failures = 0
        self._failed_at_s = float("-inf")
        self._pause_s = 0.0
        self._last_failure: str | None = None
        self._driving: int | None = None  # the thread that steps
        self._started = self._closed = False
        self._closing = threading.Lock()

    # --- for any thread ---

    def start(self) -> None:
        """Begin to live; deliveries that nobody listens to yet are lost."""
        if self._started:
            raise DriverError(f"{self.address} was started already")
        self._started = True
        self._post.start(self._build(), self.receive)
        self._deliveries.start()
        self._thread.start()

    def call(self, protocol: str, request: object) -> Future[tuple[object, ...]]:
        """A request of the application. Once what it caused is durable, the answer is what the
        protocol delivered in that very step; or the exception that the step raised."""
        answer: Future[tuple[object, ...]] = Future()
        self._put(Asked(protocol, request, answer))
        return answer

    def read(self, function: Callable[[Stack], T], timeout_s: float | None = 30.0) -> T:
        """What the function finds in the stack between two steps, once that state is durable.

        It must not change anything, nor give away what later steps will change: copy.
        """
        if self._driving == threading.get_ident():
            raise DriverError("a function that reads a stack can't read again: it holds up itself")
        answer: Future[T] = Future()
        self._put(Reading(function, answer))
        return answer.result(timeout_s)

    def on(self, protocol: str, callback: Callback) -> None:
        """Hear what a protocol delivers, in order, on a thread of the driver's (`deliveries`)."""
        self._deliveries.on(protocol, callback)

    def receive(self, sender: Address, protocol: str, message: Message) -> None:
        """For the transport: a message has come."""
        self._inbox.put(Mail(sender, protocol, message))

    def health(self) -> Health:
        return Health(
            is_up=self._machine.is_up and self._pending.trouble is None,
            lives=self._machine.lives,
            steps=self._steps,
            waiting=len(self._inbox),
            undelivered=len(self._deliveries),
            dropped=self._inbox.dropped,
            failures=self._failures,
            last_failure=self._last_failure,
            disk=self._pending.trouble,
        )

    def leave(self, within_s: float = 2.0) -> None:
        """Go on purpose: the protocols say goodbye, and the driver closes."""
        answer: Future[None] = Future()
        self._put(Leaving(answer))
        try:
            answer.result(within_s)
        finally:
            self.close(flush_within_s=within_s)

    def close(self, flush_within_s: float = 0.0) -> None:
        """Stop, without goodbyes; to the others it looks like a crash."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
        self._stop.set()
        self._store.stop()
        rest = self._inbox.close()
        if self._started:
            self._thread.join()
        self._post.close(flush_within_s)
        self._give_up(rest + self._inbox.close())
        self._deliveries.close(within_s=1.0)
        self._store.close()

    def _put(self, item: Item) -> None:
        if not self._inbox.put(item):
            raise DriverClosed(f"the driver of {self.address} is closed")

    def _give_up(self, requests: list[Request]) -> None:
        for request in requests:
            if request.answer.set_running_or_notify_cancel():
                why = DriverClosed(f"the driver of {self.address} was closed")
                request.answer.set_exception(why)

    # --- one life of the stack, on the driver's thread ---

    def _clock(self) -> int:
        return time.monotonic_ns() // 1000 + self._ahead_us

    def _live(self) -> None:
        self._driving = threading.get_ident()
        self._begin()
        while (work := self._inbox.take(self._clock, STEPS_A_COMMIT)) is not None:
            due, items = work
            rest = iter(items)
            try:
                for timer in due:
                    if timer.is_set:  # an earlier one may have cancelled it
                        self._machine.expired(timer)
                        self._step(timer.protocol, TimerFired(timer.key))
                for item in rest:
                    self._attend(item)
                    if not self._machine.is_up:  # it has left
                        self._pending.flush(self._now_us)
                        return
            finally:
                self._inbox.put_back(list(rest))
            self._pending.flush(self._now_us)

    def _begin(self) -> None:
        self._inbox.forget_timers()
        self._now_us = self._clock()
        if not self._pending.on_disk(lambda: self._store.begin_life(self._now_us)):
            return
        self._machine.lives = self._store.lives - 1
        stack, persisted = self._build(), self._store.load()
        self._do(lambda: self._machine.switch_on(stack, self._now_us, self._seed, persisted))
        self._pending.flush(self._now_us)

    def _attend(self, item: Item) -> None:
        if isinstance(item, Mail):
            if item.protocol in self._stack.protocols:
                self._step(item.protocol, Receive(item.sender, item.message))
            return
        if not item.answer.set_running_or_notify_cancel():
            return  # nobody waits for it any more
        if isinstance(item, Reading):
            self._read(item)
            return
        try:
            if isinstance(item, Asked):
                self._call(item)
            else:
                self._leave(item)
        except BaseException as error:
            item.answer.set_exception(error)
            raise

    def _call(self, item: Asked) -> None:
        name = item.protocol
        if name not in self._stack.protocols:
            known = ", ".join(self._stack.protocols)
            error = DriverError(f"{self.address} runs no protocol {name!r}, only {known}")
            item.answer.set_exception(error)
            return
        effects = self._step(name, Call(item.request))
        values = tuple(e.value for p, e in effects if p == name and isinstance(e, Deliver))
        self._pending.answer(item.answer, values)

    def _read(self, item: Reading) -> None:
        try:
            self._pending.answer(item.answer, item.function(self._stack))
        except BaseException as error:  # the reader's own affair
            item.answer.set_exception(error)

    def _leave(self, item: Leaving) -> None:
        self._now_us = self._clock()
        self._do(lambda: self._stack.leave(self._now_us))
        self._pending.answer(item.answer, None)
        self._machine.switch_off()

    @property
    def _stack(self) -> Stack:
        assert self._machine.stack is not None
        return self._machine.stack

    def _step(self, protocol: str, event: Event) -> Effects:
        self._now_us = self._clock()
        return self._do(lambda: self._stack.step(self._now_us, protocol, event))

    def _do(self, step: Callable[[], Effects]) -> Effects:
        """All of a step's effects, or none."""
        mark = self._pending.mark()
        self._steps += 1
        try:
            effects = step()
            carry_out(self, self._machine, effects)
        except BaseException:
            self._pending.take_back(mark)
            raise
        self._pending.release()
        return effects

    def _failed(self, error: BaseException) -> float:
        """A step has raised, or a commit for a reason that will not pass: the stack crashes."""
        try:
            self._pending.flush(self._now_us)  # of the steps before it
        except Exception:
            log.exception("what the steps before persisted can't be written")
            self._pending.drop(error)
        self._machine.switch_off()
        self._failures += 1
        self._last_failure = f"{type(error).__name__}: {error}"
        now_s = time.monotonic()
        is_first = now_s - self._failed_at_s > CALM_S
        self._pause_s = 0.0 if is_first else min(LONGEST_PAUSE_S, max(0.1, 2 * self._pause_s))
        self._failed_at_s = now_s
        log.error(
            "a protocol of %s failed; its stack starts again from what it persisted, in %.1f s",
            self.address,
            self._pause_s,
            exc_info=error,
        )
        return self._pause_s

    # --- effects: the hands of `driving`. What leaves the node is held until it may ---

    def send(self, machine: Machine, protocol: str, to: Address, message: Message) -> None:
        if to == self.address:
            self._pending.act(partial(self.receive, to, protocol, message))
        else:
            self._pending.act(partial(self._post.send, to, protocol, message))

    def wake(self, machine: Machine, timer: Timer, after_us: int) -> None:
        self._inbox.wake_at(self._now_us + after_us, timer)

    def persist(self, machine: Machine, protocol: str, effect: Persist) -> None:
        if effect.value is not None and not isinstance(effect.value, bytes):
            raise TypeError(
                f"{protocol} persists {effect.key!r} as {type(effect.value)}, not bytes"
            )
        self._pending.write(protocol, effect.key, effect.value)

    def deliver(self, machine: Machine, protocol: str, value: object) -> None:
        self._pending.act(partial(self._deliveries.put, protocol, value))
