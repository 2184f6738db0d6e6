"""What a tick says does not depend on who owns which hashes, nor on how its tuples lie."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.engine.shared.adapter import Collect

from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.ingest import task_landing
from thalweg.engine.shared.ingest.in_sequence import moved
from thalweg.engine.shared.ingest.task_landing import Place, TaskLanding
from thalweg.engine.shared.tick.executors import Executor, InProcess
from thalweg.engine.shared.tick.messages import TaskReport
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.windows import BEGINNING

SCRIPT = """
CREATE STREAM O (item BIGINT, price DOUBLE, city VARCHAR) TIMESTAMP BY ts BIGINT;
CREATE STREAM C (item BIGINT, buyer BIGINT) TIMESTAMP BY ts BIGINT;
CREATE STREAM P (buyer BIGINT, city VARCHAR) TIMESTAMP BY ts BIGINT;
CREATE QUERY sold AS SELECT O.item, O.price, C.buyer FROM O [Range 250], C [Range 50]
    WHERE O.item = C.item;
CREATE QUERY chain AS SELECT O.item, P.city FROM O [Range 90], C [Range 50], P [Range 60]
    WHERE O.item = C.item AND C.buyer = P.buyer;
CREATE QUERY near AS SELECT O.item, P.buyer FROM O [Range 20], P [Range 20]
    WHERE O.city = P.city AND O.price > 0.5;
CREATE QUERY spent AS SELECT C.buyer, SUM(O.price) AS total FROM O [Range 250], C [Range 50]
    WHERE O.item = C.item GROUP BY C.buyer;
CREATE QUERY dear AS SELECT ISTREAM item FROM O [Now] WHERE price > 0.9;
CREATE QUERY last AS SELECT item FROM C [Partition By buyer Rows 2];
"""
TICKS, ROWS = 6, 150


def drawn(number: int, hot: bool) -> dict[str, pl.DataFrame]:
    random = np.random.default_rng(number)
    stamps = np.sort(random.integers(number * 100, (number + 1) * 100, ROWS))
    items = random.integers(0, 200, (2, ROWS))
    if hot:
        items[1] = np.where(random.random(ROWS) < 0.7, 17, items[1])
    buyers = items[1] % 11
    cities = [f"city {c}" for c in random.integers(0, 9, ROWS)]
    return {
        "O": pl.DataFrame(
            {"ts": stamps, "item": items[0], "price": random.random(ROWS), "city": cities}
        ),
        "C": pl.DataFrame({"ts": stamps, "item": items[1], "buyer": buyers}),
        "P": pl.DataFrame({"ts": stamps, "buyer": buyers, "city": cities[::-1]}),
    }


class Here:
    def __init__(self, folder: Path, executor: Executor, **options: Any) -> None:
        self.outlet = Collect()
        self.engine = SharedEngine(folder, executor, outlet=self.outlet, durable=False, **options)
        script = compile_script(SCRIPT)
        for stream in script.catalog.streams():
            self.engine.add_stream(stream)
        self.engine.add_queries(script.queries)

    def push(self, rows: dict[str, pl.DataFrame]) -> None:
        for stream, batch in rows.items():
            self.engine.push(stream, batch)

    def land(self, rows: dict[str, pl.DataFrame]) -> None:
        """As tasks do, which do not know how many tuples come before."""
        landing = self.engine.landing
        for name, batch in rows.items():
            stream = self.engine.streams[name]
            place = landing.place(stream, 0)
            unknown = Place(BEGINNING, 0, place.floor)
            task = TaskLanding(stream, landing.folder, 0, unknown, landing.keys(stream))
            task.take(batch)
            landing.take(stream, [moved(task.close(), place)])

    @property
    def said(self) -> dict[str, list[Any]]:
        return {q: list(of) for q, of in sorted(self.outlet.results.items())}


@pytest.fixture(autouse=True)
def small_is_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thalweg.engine.shared.state.weighing.MANY", 1)


@pytest.fixture
def expected(tmp_path: Path) -> dict[bool, dict[str, list[Any]]]:
    found = {}
    for hot in (False, True):
        here = Here(tmp_path / f"expected-{hot}", InProcess())
        for number in range(TICKS):
            here.push(drawn(number, hot))
            here.engine.tick()
        found[hot] = here.said
    assert all(found[False].values())
    return found


@pytest.mark.parametrize("hot", [False, True])
@pytest.mark.parametrize("tasks", [2, 5])
def test_divided_tuples_and_moving_cuts_change_nothing(
    tmp_path: Path, expected, monkeypatch: pytest.MonkeyPatch, tasks: int, hot: bool
):
    monkeypatch.setattr(task_landing, "MANY", 1)
    monkeypatch.setattr("thalweg.plan.buckets.UNEVEN", 0.0)
    monkeypatch.setattr("thalweg.plan.buckets.BETTER", 10.0)
    here = Here(tmp_path / "divided", InProcess(tasks), rows_for_more_tasks=0)
    division, seconds = here.engine.ticks.division, count(1)
    learn = division.learn

    def learn_drawn(reports: Iterable[TaskReport], rows: dict[str, int]) -> None:
        drawn = list(reports)
        for report in drawn:
            report.cpu_s = 1 + next(seconds) % 7
        learn(drawn, rows)

    monkeypatch.setattr(division, "learn", learn_drawn)
    cuts = set()
    for number in range(TICKS):
        rows = drawn(number, hot)
        if number == 3:  # some as before, some divided
            here.push({name: rows.pop(name) for name in ("O",)})
        here.land(rows)
        here.engine.tick()
        cuts.add(here.engine.ticks.division.starts(tasks))
    assert here.said == expected[hot]
    assert len(cuts) > 1


def test_a_task_reads_no_more_than_it_owns_of_tuples_that_are_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(task_landing, "MANY", 1)
    here = Here(tmp_path, InProcess(4), rows_for_more_tasks=0)
    # Even cuts: what the first tick costs, and so how it would be cut anew, hangs on the machine.
    monkeypatch.setattr(here.engine.ticks.division, "learn", lambda reports, rows: None)
    here.push(drawn(0, False))
    here.engine.tick()  # SteMs are known from here on
    here.land(drawn(1, False))
    read: list[int] = []
    by = Task.landed_by

    def noted(self: Task, stream: str, table: Any) -> Any:
        own, rest = by(self, stream, table)
        read.append(sum(f.height for f in own))
        assert not rest.height
        return own, rest

    monkeypatch.setattr(Task, "landed_by", noted)
    here.engine.tick()
    indexes = sum(len(keys) for keys in here.engine.ticks.plan.stems.values())
    assert sum(read) == indexes * ROWS  # each tuple once for each index, over all tasks
    assert max(read) < 0.7 * ROWS  # buyers are few


def test_a_hot_key_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    here = Here(tmp_path, InProcess(4), rows_for_more_tasks=0)
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            here.push(drawn(number, True))
            here.engine.tick()
    hot = here.engine.ticks.division.hot["C"]
    assert hot.key in ("17", str(17 % 11))  # the item, or its buyer
    assert hot.rows > ROWS / 2
    said = [r.getMessage() for r in caplog.records if "have the key" in r.getMessage()]
    assert len([m for m in said if m.startswith("C:")]) == 1


def test_cuts_follow_what_tasks_cost(tmp_path: Path):
    """Half of all keys in a sixteenth of the hashes: that range gets an owner of its own."""
    here = Here(tmp_path, InProcess(2), rows_for_more_tasks=0)
    division = here.engine.ticks.division
    division.starts(2)
    from thalweg.engine.shared.tick.messages import TaskReport

    for _ in range(10):
        weights = {g: (15 if g < 1 << 60 else 1) for g in division.buckets}
        low = TaskReport([], [], [], [], {}, cpu_s=1.5, rows_by_bucket=weights)
        division.learn([low], {})
    assert division.starts(2)[1] < 1 << 62
