"""Residents in Spark's workers: the same rows, on good days and on bad ones."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.conformance.case_files import all_cases
from tests.conformance.runner import check
from tests.engine.shared.adapter import Collect, shared_engine
from tests.engine.shared.tick.joining import Joining
from tests.engine.shared.tick.test_residents import until

from thalweg.engine.shared.results.emission import TickOutput
from thalweg.engine.shared.tick import residents
from thalweg.engine.shared.tick.executors import InProcess, OnResidents
from thalweg.engine.shared.tick.resident_channel import Channel, Message
from thalweg.engine.shared.tick.residents import Residents

CASES = all_cases()[7::20]
TICKS = 6


@pytest.fixture
def on_residents(spark, monkeypatch) -> Iterator[OnResidents]:
    """Who waits for its residents, however busy the machine is."""
    monkeypatch.setattr(residents, "START_S", 60.0)
    executor = OnResidents(spark.sparkContext)
    monkeypatch.setattr(executor.residents, "_idle_s", 60.0)
    executor.residents._losses, executor.residents._not_before = 0, 0.0
    yield executor
    executor.close()


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> list[tuple]:
    joining = Joining(tmp_path_factory.mktemp("expected"), InProcess())
    for number in range(TICKS):
        joining.tick(number)
    assert len(joining.said) > 500
    return joining.said


@contextmanager
def stopped(process: int) -> Iterator[None]:
    """Whatever is sent to it, it does not get any further."""
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_residents_run_what_this_process_runs(on_residents, case):
    before = on_residents.residents.ticks
    engine = partial(
        shared_engine, tuples_per_tick=4, executor=on_residents, rows_for_more_tasks=1 << 40
    )
    check(engine, case)
    assert on_residents.residents.ticks > before


def test_a_worker_killed_in_the_middle_of_a_tick_changes_no_row(on_residents, tmp_path, expected):
    joining = Joining(tmp_path, on_residents)
    for number in range(TICKS):
        if number != 2:
            joining.tick(number)
            continue
        (process,) = on_residents.residents.processes()
        os.kill(process, signal.SIGSTOP)
        with joining.ticking(number):
            time.sleep(0.2)
            os.kill(process, signal.SIGKILL)
        on_residents.residents._not_before = 0.0
    assert joining.said == expected
    assert on_residents.residents.processes() != [process]


def test_a_slow_resident_is_waited_for(on_residents, tmp_path, expected):
    joining = Joining(tmp_path, on_residents)
    for number in range(TICKS):
        if number != 3:
            joining.tick(number)
            continue
        before = on_residents.residents.ticks
        (process,) = on_residents.residents.processes()
        with joining.ticking(number), stopped(process):
            time.sleep(1)
        assert on_residents.residents.ticks == before + 1
    assert joining.said == expected


def test_a_tick_that_runs_twice_counts_once(on_residents, tmp_path, expected, monkeypatch):
    """The first resident is given up, and comes to the end of its tick all the same."""
    given_up: list[int] = []
    asked, answer = threading.Event(), Residents._answer

    def awaited(self: Residents, channel: Channel) -> Message:
        asked.set()
        return answer(self, channel)

    monkeypatch.setattr(Residents, "_answer", awaited)

    class Sink(Collect):
        def deliver(self, output: TickOutput) -> None:
            super().deliver(output)
            if given_up:
                assert _bundles(tmp_path, 4) == 1
                os.kill(given_up.pop(), signal.SIGCONT)
                until(lambda: _bundles(tmp_path, 4) == 2, 120)

    joining = Joining(tmp_path, on_residents, Sink())
    for number in range(TICKS):
        if number != 3:
            joining.tick(number)
            continue
        given_up += on_residents.residents.processes()
        os.kill(given_up[0], signal.SIGSTOP)
        asked.clear()
        with joining.ticking(number):
            assert asked.wait(60)  # the tick is on its way to the resident
            on_residents.residents.release()
        assert not given_up
        on_residents.residents._not_before = 0.0
    assert joining.said == expected


def _bundles(folder: Path, tick: int) -> int:
    # Few results stand in a task's file of state.
    return len(list((folder / "segments").glob(f"{tick:010d}-*")))


def test_other_jobs_run_beside_a_resident(on_residents, spark, tmp_path, expected):
    """Also those that a sink begins inside a tick."""

    class Sink(Collect):
        def deliver(self, output: TickOutput) -> None:
            super().deliver(output)
            assert spark.sparkContext.parallelize(range(100), 4).count() == 100

    joining = Joining(tmp_path, on_residents, Sink())
    for number in range(TICKS):
        joining.tick(number)
        assert len(on_residents.residents.processes()) == 1
    assert joining.said == expected


def test_a_large_tick_gets_the_residents_slot(on_residents, tmp_path, expected):
    joining = Joining(tmp_path, on_residents, rows_for_more_tasks=0)
    joining.engine.ticks._settings = joining.small
    joining.tick(0)
    assert on_residents.residents.processes()
    joining.engine.ticks._settings = joining.given
    joining.tick(1)
    assert not on_residents.residents.processes()
    joining.engine.ticks._settings = joining.small
    for number in range(2, TICKS):
        joining.tick(number)
    assert on_residents.residents.processes()
    assert joining.said == expected


def test_an_idle_resident_leaves_all_slots_to_others(on_residents, spark, tmp_path, monkeypatch):
    monkeypatch.setattr(on_residents.residents, "_idle_s", 0.3)
    before = on_residents.residents.ticks
    Joining(tmp_path, on_residents).tick(0)
    assert on_residents.residents.ticks == before + 1
    tracker = spark.sparkContext.statusTracker()
    until(lambda: not tracker.getActiveJobsIds() and not on_residents.residents.processes())


def test_a_worker_killed_between_two_ticks_is_replaced(on_residents, tmp_path, expected):
    joining = Joining(tmp_path, on_residents)
    for number in range(TICKS):
        joining.tick(number)
        for process in on_residents.residents.processes():
            if number == 1:
                os.kill(process, signal.SIGKILL)
                time.sleep(0.1)
    assert joining.said == expected


def test_speculation_by_duration_would_copy_residents_so_there_are_none(spark, monkeypatch):
    from thalweg.engine.shared.tick.resident_jobs import slots_of

    context = spark.sparkContext
    assert slots_of(context) == 2
    settings = {"spark.speculation": "true", "spark.speculation.task.duration.threshold": "1s"}
    conf = context.getConf().setAll(list(settings.items()))
    monkeypatch.setattr(context, "getConf", lambda: conf)
    assert slots_of(context) == 0
    conf.set("spark.speculation", "false")
    assert slots_of(context) == 2


@pytest.mark.timeout(300)
def test_bad_days_of_a_cluster(tmp_path):
    """In a process of its own, which has its own Spark session."""
    run = [sys.executable, "-m", "tests.engine.shared.tick.bad_days", str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=290, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_threads_of_gone_residents_do_not_pile_up(on_residents, tmp_path):
    joining = Joining(tmp_path, on_residents)
    for number in range(TICKS):
        joining.tick(number)
        on_residents.residents.release()
    until(lambda: not [t for t in threading.enumerate() if t.name.startswith("resident-")])
