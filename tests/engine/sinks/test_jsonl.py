import json
from pathlib import Path

import pytest
from tests.engine.sinks.emissions import numbers

from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.jsonl import JsonLinesSink


def values(path: Path) -> list[int]:
    return [json.loads(line)["row"]["n"] for line in path.read_text().splitlines()]


def test_what_a_crash_left_behind_is_cut(tmp_path: Path):
    path = tmp_path / "deep" / "q.jsonl"
    sink = JsonLinesSink(path)
    sink.open(None)
    sink.write(numbers(1, 1, 2))
    committed = sink.progress()
    sink.write(numbers(2, 3, 4))  # and no commit
    sink.close()
    again = JsonLinesSink(path)
    again.open(committed)
    assert values(path) == [1, 2]
    again.write(numbers(2, 3, 4))
    again.progress()
    again.close()
    assert values(path) == [1, 2, 3, 4]


def test_a_file_that_was_there_before_is_continued(tmp_path: Path):
    path = tmp_path / "q.jsonl"
    path.write_text("before\n")
    sink = JsonLinesSink(path)
    sink.open(None)
    assert sink.progress() == b"7"
    sink.write(numbers(1, 1))
    assert path.read_text().startswith('before\n{"query":"q"')


def test_a_file_that_lost_committed_bytes_is_refused(tmp_path: Path):
    path = tmp_path / "q.jsonl"
    path.write_text("short\n")
    with pytest.raises(SinkError, match="has 6 bytes, but 100 were written"):
        JsonLinesSink(path).open(b"100")
    assert path.read_text() == "short\n"


def test_two_sinks_on_one_file_are_refused(tmp_path: Path):
    one = JsonLinesSink(tmp_path / "q.jsonl")
    one.open(None)
    with pytest.raises(SinkError, match="another sink writes to"):
        JsonLinesSink(tmp_path / "q.jsonl").open(None)
