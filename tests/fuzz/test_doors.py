"""A service under hostile requests: it answers each, as a problem where there is one, and stays
exact. `make soak` sends many more (THALWEG_FUZZ_REQUESTS)."""

from __future__ import annotations

import gc
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.conftest import LiveService
from tests.fuzz.requests import draw

from bench.measure import process_bytes
from thalweg.engine.paths import AllowedFolders

REQUESTS = int(os.environ.get("THALWEG_FUZZ_REQUESTS", "800"))
LONGEST_PROBLEM = 20_000  # bytes; 20 mistakes in one text, each with its line
MOST_GROWTH = 200 << 20  # bytes, of test and service together, once both are warm
SCRIPT = """
CREATE STREAM S (a INTEGER, d DATE, t TIMESTAMP, x DECIMAL(38, 2)) TIMESTAMP BY ts;
CREATE RELATION R (a INTEGER) TIMESTAMP BY ts;
CREATE QUERY q AS SELECT * FROM S [Range 5];
CREATE STREAM Peace (a INTEGER) TIMESTAMP BY ts;
CREATE QUERY calm AS SELECT SUM(a) AS total FROM Peace [Range 10];
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture
def attacked(tmp_path: Path, home: Path) -> Iterator[LiveService]:
    allowed = AllowedFolders((home,))
    live = LiveService(
        tmp_path / "data",
        base_folder=home,
        allowed=allowed,
        tick_interval_s=0.05,
        retained_ticks=5 * REQUESTS,  # all rows are read in the end
        patience_s=1_200,  # what hangs is a finding; a machine with other work is none
    )
    live.http.post("/queries", content=SCRIPT).raise_for_status()
    yield live
    live.close()


def files_below(folder: Path) -> set[Path]:
    return {p for p in folder.rglob("*") if "data" not in p.relative_to(folder).parts}


def push_calmly(service: LiveService, ts: int) -> None:
    answer = service.http.post("/streams/Peace/tuples", json=[{"ts": ts, "a": ts}])
    assert answer.json()["accepted"] == 1, answer.text


@pytest.mark.parametrize("seed", range(2))
def test_every_request_is_answered_and_nothing_falls_over(
    attacked: LiveService, tmp_path: Path, home: Path, seed: int
) -> None:
    rng = random.Random(f"doors {seed}")
    threads = {t.name for t in threading.enumerate()}
    sizes = []
    for number in range(REQUESTS // 2):
        if number % (REQUESTS // 10) == 0:
            gc.collect()
            sizes.append(process_bytes(os.getpid()))
        hostile = draw(rng)
        answer = attacked.http.request(
            hostile.method, hostile.url, headers=hostile.headers, content=hostile.body
        )
        told = f"{hostile}\n{answer.status_code} {answer.text[:2_000]}"
        assert answer.status_code < 500, told
        if answer.status_code >= 400 and hostile.method != "HEAD":
            assert answer.headers["content-type"] == "application/problem+json", told
            assert answer.json()["detail"], told
            assert len(answer.content) < LONGEST_PROBLEM, told
        if number % 50 == 0:
            push_calmly(attacked, number)
    assert sizes[-1] - sizes[1] < MOST_GROWTH, sizes
    attacked.site.settle()
    health = attacked.http.get("/health").json()
    assert health["ok"], health
    assert threads <= {t.name for t in threading.enumerate()}
    # The queries that nobody attacked are exact.
    said = attacked.http.get("/queries/calm/results?format=json&limit=100000").json()["rows"]
    stamps = list(range(0, REQUESTS // 2, 50))
    sums = [(r["ts"], r["row"]["total"]) for r in said if r["op"] == "+" and r["row"]["total"]]
    assert sums == [(ts, ts) for ts in stamps[1:-1]]  # the last instant is not final yet
    # And nothing was written outside of the folder that is allowed.
    assert files_below(tmp_path) == {home} | files_below(home)
