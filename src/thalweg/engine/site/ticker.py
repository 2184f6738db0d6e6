"""The thread that ticks: as soon as that says something, but not more often than is useful."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from thalweg.engine.failures import FAILURES
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.tick.measures import Tick
from thalweg.engine.site.book import Book
from thalweg.engine.site.feeds import Feeds
from thalweg.engine.site.outlet import SinkFailed, SiteOutlet
from thalweg.engine.site.parking import is_environment_error, last_line, park_culprits
from thalweg.engine.site.tick_gate import TickGate
from thalweg.engine.site.tick_pace import TickPace
from thalweg.engine.supervised import SupervisedThread

log = logging.getLogger(__name__)

TICK_ROWS = 500_000  # at most so many tuples to a tick: bounds its memory and its latency
TICK_INTERVAL_S = 0.05  # between ticks where many follow upon each other (`tick_pace`)
PATIENCE = 3  # attempts at a tick before somebody is held responsible
_LONGEST_PAUSE_S = 5.0
_IDLE_CHECK_S = 0.1
_REMEMBERED = 600


@dataclass(frozen=True, slots=True)
class Ticked:
    """A committed tick, and how many rows each query said."""

    tick: Tick
    rows: dict[str, int]
    at: float  # time.time()
    delay_s: float  # since the first tuple landed that it has read


class Ticker:
    def __init__(
        self,
        engine: SharedEngine,
        feeds: Feeds,
        outlet: SiteOutlet,
        book: Book,
        gate: TickGate,
        *,
        rows: int = TICK_ROWS,
        interval_s: float = TICK_INTERVAL_S,
        committed: Callable[[Ticked], None] = lambda _: None,
        parked: Callable[[Mapping[str, str]], None] = lambda _: None,
    ) -> None:
        self.engine, self.feeds, self.outlet, self.book = engine, feeds, outlet, book
        self._gate = gate
        self.rows, self._pace = rows, TickPace(interval_s)
        self.recent: deque[Ticked] = deque(maxlen=_REMEMBERED)
        self.error: str | None = None  # of the tick that is being tried
        self.attempts = 0
        self._committed, self._parked = committed, parked
        self._woken, self._stop = threading.Event(), threading.Event()
        self._landed_at: float | None = None  # the first tuple that no tick has read
        self._resting = threading.Event()  # nothing was left to do when last looked
        self._thread = SupervisedThread("ticker", self._loop, stop=self._stop, failed=self._failed)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """The tick that runs is finished first."""
        self._stop.set()
        self._woken.set()
        self._thread.join()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def landed(self) -> None:
        """There is something to read."""
        if self._landed_at is None:
            self._landed_at = time.monotonic()
        self.wake()

    def wake(self) -> None:
        """There may be something to do."""
        self._resting.clear()
        self._woken.set()

    def wait_until_resting(self, timeout_s: float) -> bool:
        """Until all that has landed has been ticked over; whether that came to pass."""
        self.wake()
        return self._resting.wait(timeout_s)

    def _loop(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            self._gate.before_tick()
            self._woken.clear()
            left_s = self._pace.gather_s(began)
            landed_at, self._landed_at = self._landed_at, None
            tick = self.engine.tick_only(
                limit=self.rows, is_idle=self.feeds.is_idle, patient=left_s > 0
            )
            if tick is not None:
                self._pace.ticked(began)
                self._done(tick, began if landed_at is None else landed_at)
                self.engine.clear_away()
                if tick.rows_in >= self.rows:
                    self._landed_at = landed_at  # it has left some
                self._stop.wait(self._pace.pause_s(time.monotonic()))
                continue
            self.error, self.attempts = None, 0
            if left_s > 0 and self.engine.store.inputs.has_landed():
                self._landed_at = landed_at
                self._pace.gathers(began)
                self._woken.wait(left_s)
                continue
            self._pace.rests()
            if not self._woken.is_set():
                self._resting.set()
                self._rest()
            # Wakes by itself too, because falling silent makes no noise.
            self._woken.wait(_IDLE_CHECK_S)

    def _rest(self) -> None:
        with self._gate.between_ticks():
            try:
                self.outlet.rest()
            except Exception as error:
                log.error("a sink could not write what has waited: %s", last_line(error))

    def _done(self, tick: Tick, landed_at: float) -> None:
        self.error, self.attempts = None, 0
        delay_s = time.monotonic() - landed_at
        done = Ticked(tick, self.outlet.committed(), time.time(), delay_s)
        self.recent.append(done)
        self._committed(done)

    def _failed(self, error: BaseException) -> float:
        """Make ready to try the tick again; gives how long to wait."""
        self.attempts += 1
        self.error = last_line(error)
        log.error("a tick failed (attempt %d): %s", self.attempts, self.error)
        log.debug("", exc_info=error)
        try:
            self.engine.forget_unfinished()
            if self.attempts >= PATIENCE:
                self._isolate_culprit(error)
        except FAILURES as another:
            log.error("and so did its repair: %s", last_line(another))
        return min(0.1 * float(2**self.attempts), _LONGEST_PAUSE_S)

    def _isolate_culprit(self, error: BaseException) -> None:
        if isinstance(error, SinkFailed):
            if not error.will_pass:
                self.outlet.give_up(error.query, error.sink)
                self.book.fail_sink(error.query, error.sink, error.reason)
        elif not is_environment_error(error):
            parked = park_culprits(self.engine, self.book)
            for name in parked:
                self.outlet.detach(name)
            self._parked(parked)
