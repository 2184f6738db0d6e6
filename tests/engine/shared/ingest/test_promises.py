"""Accepted is a promise: whatever a tick is doing when a tuple comes, the tuple is late or counts.

Each test lets something arrive at one step of a tick, which is held there: functions of a tick are
replaced by ones that push first. What queries say in the end must be what the reference says of the
accepted tuples.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.engine.shared.adapter import Collect

from thalweg.cql import compile_script
from thalweg.engine.arrivals import Arrival
from thalweg.engine.reference import evaluate
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.ingest.arriving import Receipt
from thalweg.engine.shared.results.results import Results
from thalweg.engine.shared.state.inputs import Inputs
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick.commit import Commit
from thalweg.engine.shared.tick.delivery import Delivery
from thalweg.engine.shared.tick.ticks import Ticks

SCRIPT = """
CREATE STREAM S (k BIGINT) TIMESTAMP BY ts BIGINT IDLE 1 SECOND;
CREATE STREAM T (k BIGINT) TIMESTAMP BY ts BIGINT;
CREATE QUERY pairs AS SELECT S.k, T.k AS other FROM S [Range 100], T [Range 100] WHERE S.k = T.k;
CREATE QUERY all_of_t AS SELECT k FROM T [Now];
"""
# (what, its method, whether what comes arrives before it or behind it)
STEPS: dict[str, tuple[Any, str, bool]] = {
    "before the cut": (Ticks, "write_down", True),
    "behind the cut": (Ticks, "write_down", False),
    "before the tasks": (Ticks, "_execute", True),
    "before delivery": (Delivery, "__call__", True),
    "before the commit": (Commit, "__call__", True),
    "as old results go": (Results, "expire", True),
    "behind the commit": (Commit, "__call__", False),
}


class Running:
    """An engine over S and T; remembers what was accepted."""

    def __init__(self, folder: Path) -> None:
        self.script = compile_script(SCRIPT)
        self.outlet = Collect()
        self.engine = SharedEngine(folder, outlet=self.outlet, durable=False)
        self.streams = {s.name: s for s in self.script.catalog.streams()}
        for stream in self.streams.values():
            self.engine.add_stream(stream)
        self.engine.add_queries(self.script.queries)
        self.accepted: dict[str, list[Arrival]] = {"S": [], "T": []}
        self.idle: set[tuple[str, int | None]] = set()

    def push(self, stream: str, ts: int, key: int, partition: int = 0) -> Receipt:
        batch = pl.DataFrame({"ts": [ts], "k": [key]})
        receipt = self.engine.landing.push(self.streams[stream], batch, partition=partition)
        if receipt.accepted:
            place = len(self.accepted[stream])
            self.accepted[stream].append(Arrival(partition, ts, place, (key,)))
        return receipt

    def tick(self) -> None:
        self.engine.tick(is_idle=lambda s, p: (s, p) in self.idle or (s, None) in self.idle)

    def end(self) -> None:
        for stream in self.streams.values():
            self.engine.landing.finish(stream)
        self.engine.run_to_end()
        self.engine.close()

    def check(self) -> None:
        """Each accepted tuple has had its effect."""
        for query in self.script.queries:
            expected = evaluate(query.plan, self.accepted_in_order())
            assert self.outlet.results.get(query.name, []) == list(expected), query.name

    def accepted_in_order(self) -> dict[str, list[Arrival]]:
        return {
            stream: sorted(of, key=lambda a: (a.timestamp, a.position))
            for stream, of in self.accepted.items()
        }


@pytest.fixture
def running(tmp_path: Path) -> Running:
    return Running(tmp_path / "data")


def once_at(step: str, do: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Do it the next time a tick comes to the step; from another thread, as pushes do."""
    owner, method, is_before = STEPS[step]
    real, done = getattr(owner, method), []

    def act() -> None:
        if not done:
            done.append(True)
            thread = threading.Thread(target=do)
            thread.start()
            thread.join(20)
            assert not thread.is_alive(), "a push waits for the tick"

    def wrapped(self: Any, *args: Any, **options: Any) -> Any:
        if is_before:
            act()
        found = real(self, *args, **options)
        if not is_before:
            act()
        return found

    monkeypatch.setattr(owner, method, wrapped)


@pytest.mark.parametrize("step", STEPS)
def test_a_push_to_an_idle_stream_counts_or_is_late(
    running: Running, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.push("S", 1, 7)
    running.push("T", 1, 7)
    running.tick()
    running.idle.add(("S", None))
    receipts: list[Receipt] = []
    once_at(step, lambda: receipts.append(running.push("S", 10, 5)), monkeypatch)
    running.push("T", 10, 5)
    running.push("T", 50, 7)
    running.tick()  # S is idle: time goes on to 50
    running.idle.clear()
    running.end()
    (receipt,) = receipts
    assert receipt.accepted + receipt.late == 1
    assert receipt.accepted == (step == "before the cut")
    running.check()


def test_floors_that_do_not_rise_are_caught(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Inputs, "raise_floors", lambda *_: None)
    with pytest.raises(AssertionError):
        test_a_push_to_an_idle_stream_counts_or_is_late(running, "before the tasks", monkeypatch)


@pytest.mark.parametrize("step", STEPS)
def test_a_partition_that_joins_starts_at_what_is_final(
    running: Running, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.push("T", 5, 1)
    running.tick()
    receipts: list[Receipt] = []
    once_at(step, lambda: receipts.append(running.push("T", 8, 2, partition=3)), monkeypatch)
    running.push("T", 20, 3)
    running.tick()
    receipts.append(running.push("T", 9, 4, partition=4))
    running.end()
    # One that came in time holds time back at 8, so that 9 is not late either.
    in_time = step == "before the cut"
    assert [r.accepted for r in receipts] == [in_time, in_time]
    assert [r.late for r in receipts] == [not in_time, not in_time]
    running.check()


@pytest.mark.parametrize("step", STEPS)
def test_what_comes_behind_the_end_is_late(
    running: Running, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a partition that nobody has heard of before."""
    running.push("T", 5, 1)
    receipts: list[Receipt] = []

    def finish() -> None:
        running.engine.landing.finish(running.streams["T"])
        receipts.append(running.push("T", 100, 2))
        receipts.append(running.push("T", 100, 3, partition=9))

    once_at(step, finish, monkeypatch)
    running.push("T", 6, 4)
    running.tick()
    running.end()
    assert [(r.accepted, r.late) for r in receipts] == [(0, 1), (0, 1)]
    running.check()


@pytest.mark.parametrize("step", STEPS)
def test_a_heartbeat_is_a_promise_at_every_step(
    running: Running, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.push("T", 5, 1)
    receipts: list[Receipt] = []

    def promise() -> None:
        running.engine.landing.heartbeat(running.streams["T"], 40)
        receipts.append(running.push("T", 39, 2))
        receipts.append(running.push("T", 40, 3))

    once_at(step, promise, monkeypatch)
    running.push("T", 6, 4)
    running.tick()
    running.end()
    assert [r.accepted for r in receipts] == [0, 1]
    running.check()


def test_tuples_that_have_to_wait_for_the_next_tick_keep_their_partition_awake(
    running: Running,
) -> None:
    """They have landed, so time may not pass them, however long ago that was."""
    running.push("T", 1, 1)
    running.push("S", 5, 1)
    running.idle.add(("S", None))
    running.push("T", 90, 2)
    running.engine.tick(limit=1, is_idle=lambda s, _: s == "S")
    running.engine.tick(limit=1, is_idle=lambda s, _: s == "S")
    running.end()
    running.check()


def test_one_silent_partition_does_not_stall_its_stream(running: Running) -> None:
    running.push("T", 1, 1, partition=0)
    running.push("T", 1, 2, partition=1)
    running.idle.add(("T", 1))
    for ts in range(2, 10):
        running.push("T", ts, ts, partition=0)
        running.tick()
    assert ("+", 7) in {(c.op, c.ts) for c in running.outlet.results["all_of_t"]}
    assert running.push("T", 3, 99, partition=1).late == 1
    running.idle.clear()
    running.end()
    running.check()


def test_idleness_is_decided_before_anything_follows_from_it(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The floor is in the book as soon as the tick's record is."""
    running.push("S", 1, 1)
    running.push("T", 60, 1)
    seen: list[int] = []
    real = Ticks._execute

    def look(self: Ticks, *args: Any) -> Any:
        seen.append(running.engine.store.inputs.floor("S"))
        return real(self, *args)

    monkeypatch.setattr(Ticks, "_execute", look)
    running.idle.add(("S", None))
    running.tick()
    assert seen == [60]
    running.engine.close()
    reopened = Store(running.engine.folder)
    assert reopened.inputs.floor("S") == 60
    reopened.close()


def test_many_threads_that_push_while_ticks_run_lose_nothing(running: Running) -> None:
    """Two streams, one of which is idle most of the time: as seen from outside."""
    stop = threading.Event()
    running.engine.landing.declare(running.streams["T"], [0, 1])  # else one may join late
    running.idle.add(("S", None))
    errors: list[BaseException] = []

    def pushing(stream: str, first: int, step: int) -> None:
        try:
            for ts in range(first, 600, step):
                running.push(stream, ts, ts % 5, partition=first)
        except BaseException as error:
            errors.append(error)

    def ticking() -> None:
        while not stop.is_set():
            running.tick()

    ticker = threading.Thread(target=ticking)
    pushers = [
        threading.Thread(target=pushing, args=args)
        for args in (("T", 0, 3), ("T", 1, 3), ("S", 0, 11), ("S", 1, 7))
    ]
    ticker.start()
    for pusher in pushers:
        pusher.start()
    for pusher in pushers:
        pusher.join()
    stop.set()
    ticker.join()
    assert not errors
    running.idle.clear()
    running.end()
    assert len(running.accepted["T"]) == 400
    running.check()
