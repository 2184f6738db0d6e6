"""The pieces of `bench scale` that need no cluster."""

import os
from pathlib import Path

import pytest
from tests.engine.s3_server import VERSITYGW

from bench import scale
from bench.scale_driver import DriverPhases, jvm_cpu_s
from bench.scale_events import Events
from bench.scale_paper import estimate, fit
from bench.scale_store import DISK, STORE, store_rows
from bench.scale_tasks import task_rows
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.tick.delivery import Delivery


def tasks(a: float, b: float, c: float) -> list[dict]:
    return [
        {
            "what": "task",
            "source": "divided",
            "tasks": p,
            "events": n,
            "longest task cpu s": a + b * n + c * n / p,
        }
        for n in (200_000, 1_000_000)
        for p in (1, 4, 16)
    ]


def row(what: str, executors: int, seconds: float, driver: float) -> dict:
    return {
        "what": what,
        "source": scale.IN_TASKS,
        "executors": executors,
        "events": 1_000_000,
        "seconds": seconds,
        "cpu s": 2.0,
        "driver s": driver,
        "driver share": driver / 2.0,
    }


def test_the_cost_of_a_task_is_found_again():
    assert fit(tasks(0.04, 1e-8, 4e-7), "divided") == pytest.approx((0.04, 1e-8, 4e-7), rel=1e-3)


def test_the_driver_bounds_what_more_cores_can_do():
    rows = [row("land", 2, 1.0, 0.2), row("tick", 2, 1.0, 0.4)]
    paper = estimate(rows, tasks(0.04, 0.0, 4e-7), 200_000)
    rates = [r["events/s"] for r in paper.rows]
    assert rates[0] < rates[1]
    assert max(rates) < 1 / (0.4 / 1_000_000)  # the driver's own seconds by event
    assert "file ingest 10.0 x one core (2 executors)" in paper.notes[0]
    assert "large ticks with one sink 5.0 x one core (2 executors)" in paper.notes[0]


def test_goals_can_be_missed():
    slow = [row("land", 1, 2.0, 0.1), row("tick", 1, 2.0, 0.1)]
    quick = [row("land", 2, 1.0, 0.1), row("tick", 2, 1.9, 0.3)]
    kafka = [{"source": "kafka", "us/event": 5.0, "events/s": 400_000.0}]
    goals = [*scale.goals([*slow, *quick]), *scale._goals_of_kafka(kafka)]
    met = {g.name: g.met for g in goals}
    assert met == {
        "driver's share of a large tick's CPU": False,
        "driver's share of landing files": True,
        "large ticks, 2 executors over 1": False,
        "file ingest, 2 executors over 1": True,
        "Kafka: CPU an event without the broker's": False,
        "Kafka: events a second": True,
    }


def test_a_tick_is_measured_task_by_task(tmp_path: Path):
    rows = task_rows((2_000,), (1, 2), 7, tmp_path, many=100)
    assert [(r["tasks"], r["source"]) for r in rows] == [
        (1, "read whole"),
        (1, "divided"),
        (2, "read whole"),
        (2, "divided"),
    ]
    assert all(0 < r["longest task cpu s"] <= r["all tasks cpu s"] for r in rows)


def test_the_drivers_time_is_noted_by_phase(tmp_path: Path):
    made = Events(400, 2, 7, tmp_path / "events")
    engine = SharedEngine(tmp_path / "data", durable=False)
    compiled = made.script(2)
    for stream in compiled.catalog.streams():
        engine.add_stream(stream)
    engine.add_queries(compiled.queries)
    real, noted = Delivery.__call__, DriverPhases(os.getpid())
    with noted.noting():
        made.push_first(engine)
        engine.tick()
    engine.close()
    assert Delivery.__call__ is real
    assert {phase for phase, _ in noted.seconds} == {"cut", "run", "deliver", "commit"}
    assert noted.row()["run: Python cpu s"] > 0
    assert noted.own_s > 0


def test_threads_are_told_apart_by_their_names():
    found = jvm_cpu_s(os.getpid())
    assert set(found) == {"JVM", "JVM's compiler", "JVM's collector"}
    assert found["JVM"] > 0
    assert found["JVM's compiler"] == 0


@pytest.mark.skipif(not VERSITYGW.exists(), reason="no S3 server: `make s3` builds one")
def test_state_in_a_store_is_measured_beside_a_disk(tmp_path: Path):
    rows = store_rows((400,), 2, 7, tmp_path)
    assert [(r["what"], r["source"]) for r in rows] == [
        ("store", DISK),
        ("restart", DISK),
        ("store", STORE),
        ("restart", STORE),
    ]
    there = rows[2]
    assert there["put a tick"] == there["tasks"]  # what is said stands beside state
    assert there["create a tick"] == 2  # the tick is written down, and committed
    assert there["get a tick"] == 0
    assert rows[3]["state bytes"] > 0
    (goal,) = scale._goals_of_store(rows)
    assert (goal.measured, goal.met) == (1, True)
    assert "AWS_ENDPOINT" not in os.environ
