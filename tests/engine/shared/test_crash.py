"""kill -9 at any point, start again: the output is that of a run without the crash."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import polars as pl
import pytest
from tests.engine.shared.crashing import BATCHES, OF_LARGE_RESULTS, POINTS
from tests.engine.topics import Topic

T = TypeVar("T")
EVERY = "THALWEG_FAULTS" in os.environ  # `make soak`


def in_turn(cases: Sequence[T], number: int = 0) -> Sequence[T]:
    """All of them in the soak, otherwise one."""
    return cases if EVERY else [cases[number % len(cases)]]


QUERIES = ("sold", "sold_dear", "sold_late", "sellers", "latest", "buyers")


class Server:
    """Runs scenarios, each in a process of its own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("crashing.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, **scenario: Any) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(scenario, default=str) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=120)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.close()


def output(folder: Path) -> dict[str, Any]:
    """All that a run leaves for others to read."""
    lines = {p.relative_to(folder): p.read_bytes() for p in sorted(folder.glob("*.jsonl"))}
    lines |= {p.relative_to(folder): p.read_bytes() for p in sorted(folder.glob("*.csv"))}
    aside = {
        p.relative_to(folder): p.read_bytes()
        for p in sorted(folder.glob("data/*/*.jsonl"))
        if p.parent.name in ("late", "rejects")
    }
    tables = {q: pl.read_parquet(folder / q / "*.parquet").rows() for q in QUERIES}
    return {"lines": lines, "aside": aside, "tables": tables}


@pytest.fixture(scope="module")
def expected(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("uncrashed")
    assert server.run(folder=folder) == 0
    return output(folder)


def test_the_run_without_a_crash_says_something_in_every_way(expected: dict[str, Any]):
    assert len(expected["lines"]) == 2 * len(QUERIES)
    assert len(expected["aside"]) == 4  # both streams have late and rejected tuples
    assert all(len(text.splitlines()) > 50 for text in expected["lines"].values())
    for query in QUERIES:
        assert len(expected["tables"][query]) == len(
            expected["lines"][Path(f"{query}.jsonl")].splitlines()
        )
        rows = expected["lines"][Path(f"{query}.csv")].splitlines()
        assert len(rows) == 1 + len(expected["tables"][query])


@pytest.mark.parametrize(
    ("point", "times"),
    [
        (p, times)
        for n, p in enumerate(q for q in POINTS if q not in OF_LARGE_RESULTS)
        for times in in_turn((1, 2 if p == "in the middle of a move" else 5), n)
    ],
)
def test_killed_at_a_point_and_started_again(server, expected, tmp_path, point, times):
    assert server.run(folder=tmp_path, point=point, times=times) == -signal.SIGKILL
    assert server.run(folder=tmp_path) == 0
    assert output(tmp_path) == expected


@pytest.mark.parametrize(
    ("point", "times"),
    [
        (None, 0),
        *((p, times) for n, p in enumerate(OF_LARGE_RESULTS) for times in in_turn((9, 40, 1), n)),
        *in_turn(
            [
                ("between tasks and sinks", 2),
                ("before a Parquet file has its name", 9),
                ("between sinks and commit", 2),
                ("at the end of the commit", 2),
            ]
        ),
    ],
)
def test_large_results_are_made_by_tasks_once(server, expected, tmp_path, point, times):
    if point is not None:
        killed = server.run(folder=tmp_path, point=point, times=times, is_large=True)
        assert killed == -signal.SIGKILL
    assert server.run(folder=tmp_path, is_large=True) == 0
    found = output(tmp_path)
    # A tick's tables are several files, whose names do not sort by time where one has no beginning.
    in_order = {q: sorted(rows, key=repr) for q, rows in expected["tables"].items()}
    assert {q: sorted(rows, key=repr) for q, rows in found["tables"].items()} == in_order
    assert (found["lines"], found["aside"]) == (expected["lines"], expected["aside"])
    assert len(list((tmp_path / "sellers").glob("*.parquet"))) > BATCHES + 1


@pytest.mark.parametrize("point", ["in the middle of a line", "at the end of the commit"])
def test_killed_again_and_again_at_the_same_point(server, expected, tmp_path, point):
    for _ in range(4):
        server.run(folder=tmp_path, point=point, times=2)
    assert server.run(folder=tmp_path) == 0
    assert output(tmp_path) == expected


@pytest.mark.parametrize("seed", range(4 if EVERY else 2))
def test_killed_at_random_moments(server, expected, tmp_path, seed):
    moments = random.Random(seed)
    killed = 0
    # However slow the machine is, one of the lives is long enough.
    while (
        server.run(folder=tmp_path, after_s=moments.uniform(0.05, 1.05**killed)) == -signal.SIGALRM
    ):
        killed += 1
    assert output(tmp_path) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "rows_for_more_tasks",
    in_turn([1 << 40, 0]),
    ids=lambda rows: "residents" if rows else "jobs",
)
def test_killed_between_tasks_and_sinks_on_spark(expected, tmp_path, rows_for_more_tasks):
    program = [sys.executable, Path(__file__).with_name("crashing.py")]
    how = {"folder": str(tmp_path), "rows_for_more_tasks": rows_for_more_tasks}
    killed = {**how, "point": "between tasks and sinks", "times": 3}
    first = subprocess.run([*program, json.dumps(killed)], timeout=400, check=False)
    assert first.returncode == -signal.SIGKILL
    subprocess.run([*program, json.dumps(how)], timeout=400, check=True)
    assert output(tmp_path) == expected


@pytest.mark.skipif(not EVERY, reason="minutes: `make soak` plays it")
@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.timeout(1800)
def test_large_results_are_in_a_topic_once(expected, tmp_path, spark, broker):
    """Of a query that runs alone, and of a member of a group; killed three times on the way."""
    topics = {q: Topic(spark, broker, f"killed-{q}", 1) for q in ("sellers", "sold")}
    program = [sys.executable, Path(__file__).with_name("crashing.py")]
    how = {"folder": str(tmp_path), "topics": {q: t.uri for q, t in topics.items()}}
    for point, times in (
        ("with all parts encoded, before records", 2),
        ("with records, before the commit", 2),
        ("between sinks and commit", 2),
    ):
        killed = json.dumps({**how, "point": point, "times": times})
        first = subprocess.run([*program, killed], timeout=400, check=False)
        assert first.returncode == -signal.SIGKILL, point
    subprocess.run([*program, json.dumps(how)], timeout=400, check=True)
    for query, topic in topics.items():
        lines = [value.decode() for _, value, _ in topic.received()]
        assert lines == expected["lines"][Path(f"{query}.jsonl")].decode().splitlines()
