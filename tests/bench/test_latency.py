from pathlib import Path

import pytest

from bench import latency
from bench.latency import (
    FLINK,
    HERE,
    JOB,
    RESIDENT,
    Parameters,
    event_rows,
    goals,
    peer_rows,
    tick_rows,
)
from thalweg.engine.shared.tick.executors import InProcess

SMALL = Parameters(events=20, ticks=3, repeats=2, gap_s=0.0, queries=4, history=50)


def test_all_ways_are_measured_on_the_same_events(tmp_path: Path) -> None:
    ways = {way: InProcess() for way in (JOB, HERE, RESIDENT)}
    rows = [
        *tick_rows(SMALL, ways, tmp_path / "ticks"),
        *event_rows(SMALL, ways, tmp_path / "few", 0, lambda *_: None),
        *event_rows(SMALL, ways, tmp_path / "many", 4, lambda *_: None),
    ]
    assert [(r["what"], r["queries"]) for r in rows if r["way"] == RESIDENT] == [
        ("tick", 1),
        ("event to row", 1),
        ("event to row", 5),
    ]
    assert all(r["median ms"] > 0 for r in rows)
    written = {p.read_text().count("\n") for p in tmp_path.glob("*/*/rows.jsonl")}
    assert len(written) == 1  # the same rows, whoever ran the ticks
    assert len(goals(rows)) == 5


def test_an_fsync_takes_its_time(tmp_path: Path) -> None:
    assert latency.fsync_ms(tmp_path, 3) > 0


def test_peers_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THALWEG_FLINK_PYTHON", "/nowhere/python")
    asked = Parameters(repeats=1, peers=(FLINK,), checkpoints_ms=(10,))
    rows, lacking = peer_rows(asked, lambda *_: None)
    assert not rows
    assert len(lacking) == 1
    assert "make flink" in lacking[0]
