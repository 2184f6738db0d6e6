"""A repeated push counts once, and what is known of pushes does not grow for ever."""

from pathlib import Path

import polars as pl
import pytest
from tests.engine.shared.test_engine import Running

from thalweg.engine.shared.ingest import batch_ids
from thalweg.engine.shared.ingest.arriving import Receipt


@pytest.fixture
def running(tmp_path: Path) -> Running:
    return Running(tmp_path / "data")


def test_a_repeated_batch_counts_once(running: Running):
    running.submit("everything", "SELECT a FROM S [Now]")
    batch = pl.DataFrame({"ts": [1], "a": [1], "b": ["x"]})
    first = running.engine.push("S", batch, batch_id="one")
    again = running.engine.push("S", batch, batch_id="one")
    assert (first.accepted, again.accepted, again.repeated) == (1, 0, True)


def test_a_batch_is_forgotten_only_when_all_of_it_would_be_late(
    running: Running, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(batch_ids, "REMEMBERED", 2)
    running.submit("everything", "SELECT a FROM S [Now]")

    def push(*stamps: int):
        rows = {"ts": stamps, "a": stamps, "b": ["x"] * len(stamps)}
        return running.engine.push("S", pl.DataFrame(rows), batch_id=str(stamps))

    for stamps in ((1, 1), (1, 5), (2, 3), (5,), (5, 5)):
        assert push(*stamps).repeated is False
    assert push(1, 5).repeated  # old enough, but 5 would not be late
    assert push(2, 3).repeated  # would be late, but is not old
    assert push(1, 1) == Receipt(accepted=0, late=2, rejected=0)
    running.engine.finish("S")
    running.engine.finish("T")
    running.engine.run_to_end()
    assert running.said("everything") == [
        (1, "+", 1),
        (1, "+", 1),
        (1, "+", 1),
        (2, "-", 1),
        (2, "-", 1),
        (2, "-", 1),
        *[(5, "+", 5)] * 4,
        *[(6, "-", 5)] * 4,
    ]
