"""The pieces of `bench scale` that need no cluster."""

from pathlib import Path

import pytest

from bench import scale
from bench.scale_paper import estimate, fit
from bench.scale_tasks import task_rows


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
    assert "10 x one core" in paper.notes[0]


def test_goals_can_be_missed():
    slow = [row("land", 1, 2.0, 0.1), row("tick", 1, 2.0, 0.1)]
    quick = [row("land", 2, 1.0, 0.1), row("tick", 2, 1.9, 0.3)]
    kafka = [{"source": "kafka", "us/event": 5.0, "events/s": 400_000.0}]
    met = {g.name: g.met for g in scale.goals([*slow, *quick], kafka)}
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
