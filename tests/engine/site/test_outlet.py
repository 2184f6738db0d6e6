import errno
import json
import os
import threading
import time
from pathlib import Path

import polars as pl
import pytest
from tests.engine.site.conftest import OpenSite, rows, said

from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.callback import CallbackSink
from thalweg.engine.sinks.jsonl import JsonLinesSink
from thalweg.engine.site import Site

SCRIPT = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; CREATE QUERY q AS SELECT a FROM S"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thalweg.engine.site.ticker._LONGEST_PAUSE_S", 0.01)


def test_rows_are_counted_across_restarts(open_here: OpenSite) -> None:
    site = open_here()
    site.execute(SCRIPT)
    site.push("S", rows((1, 1), (2, 2), (3, 3)))
    site.settle()
    assert site.queries()[0].rows == 2
    site.close()
    again = open_here()
    again.push("S", rows((4, 4)))
    again.settle()
    assert again.queries()[0].rows == 3
    again.execute("DROP QUERY q; CREATE QUERY q AS SELECT a FROM S")
    assert again.queries()[0].rows == 0


def test_rows_count_once_whenever_they_are_asked_for(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.execute(SCRIPT)
    told, commit = [], site.outlet.committed

    def asked_before_the_outlet_knows() -> dict[str, int]:
        told.append(site.outlet.rows_of("q"))  # the book has the tick's rows already
        return commit()

    monkeypatch.setattr(site.outlet, "committed", asked_before_the_outlet_knows)
    site.push("S", rows((1, 1), (2, 2), (3, 3)))
    site.settle()
    assert told
    assert site.queries()[0].rows == 2


def test_a_sink_that_fails_once_makes_no_other_repeat_itself(site: Site, tmp_path: Path) -> None:
    site.execute(SCRIPT)
    left = [2]

    def fail_twice(_: Emission) -> None:
        if left[0]:
            left[0] -= 1
            raise ConnectionError("gone for a moment")

    site.attach("q", "a", JsonLinesSink(tmp_path / "a.jsonl"))
    site.attach("q", "b", CallbackSink(fail_twice))
    site.attach("q", "c", JsonLinesSink(tmp_path / "c.jsonl"))
    site.push("S", rows((1, 1), (2, 2), (3, 3)))
    site.settle()
    assert left == [0]
    for name in ("a.jsonl", "c.jsonl"):
        assert (tmp_path / name).read_text().count("\n") == 2
    assert site.queries()[0].rows == 2


def test_a_sink_that_keeps_failing_is_given_up_and_the_tick_goes_through(site: Site) -> None:
    site.execute(SCRIPT)

    def fail(_: Emission) -> None:
        raise RuntimeError("gone for good")

    site.attach("q", "broken", CallbackSink(fail))
    site.push("S", rows((1, 1), (2, 2)))
    site.settle()
    assert said(site, "q") == [(1, "+", 1)]
    assert site.health().ok
    (status,) = site.queries()
    assert [(s.name, s.error) for s in status.sinks] == [("broken", "RuntimeError: gone for good")]


def test_a_sink_goes_on_after_a_restart_and_after_a_crash(
    open_here: OpenSite, tmp_path: Path
) -> None:
    site = open_here()
    site.execute(SCRIPT)
    assert site.write_to("q", "out.jsonl") == "sink-1"
    assert site.write_to("q", "parquet:rows", tmp_path / "elsewhere") == "sink-2"
    for i in range(3):
        site.push("S", rows((i, i)))
        site.settle()
    site.close()
    # A crash between sink and commit leaves more in the file than the book knows of.
    with (tmp_path / "out.jsonl").open("a") as file:
        file.write("half a line")
    again = open_here()
    for i in range(3, 6):
        again.push("S", rows((i, i)))
        again.settle()
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["row"]["a"] for line in lines] == [0, 1, 2, 3, 4]
    again.detach("q", "sink-1")
    again.push("S", rows((6, 6)))
    again.settle()
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 5
    assert [s.name for s in again.queries()[0].sinks] == ["sink-2"]
    again.close()
    found = pl.read_parquet(tmp_path / "elsewhere" / "rows" / "*.parquet")
    assert sorted(found["a"].to_list()) == [0, 1, 2, 3, 4, 5]


def test_a_sink_that_is_none_is_refused(site: Site) -> None:
    site.execute(SCRIPT)
    for target in ("out", "xml:out", "jsonl:"):
        with pytest.raises(SinkError, match="there is no sink"):
            site.write_to("q", target)
    assert site.queries()[0].sinks == []


# --- disks that are full for a while, and sinks that are given up


class Disk:
    """Takes half of what is written while it is full, as a disk does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: int = errno.ENOSPC) -> None:
        self.is_full, self._write, self._error = False, os.pwrite, error
        self.refused = threading.Event()
        monkeypatch.setattr("thalweg.engine.sinks.append.os.pwrite", self.pwrite)

    def pwrite(self, file: int, data: memoryview, offset: int) -> int:
        if not self.is_full:
            return self._write(file, data, offset)
        if len(data) > 10:
            return self._write(file, data[: len(data) // 2], offset)
        self.refused.set()
        raise OSError(self._error, os.strerror(self._error))


def values_in(file: Path) -> list[int]:
    return [json.loads(line)["row"]["a"] for line in file.read_text().splitlines()]


def test_a_disk_that_is_full_is_waited_for_and_no_line_is_torn(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    site.execute(SCRIPT)
    site.write_to("q", "out.jsonl")
    site.push("S", rows((1, 1), (2, 2)))
    site.settle()
    disk.is_full = True
    site.push("S", rows((3, 3)))
    assert disk.refused.wait(30)
    while site.ticker.attempts < 5:  # patience with anything else would be at its end
        time.sleep(0.01)
    health = site.health()
    assert not health.ok
    assert health.error is not None
    assert "sink-1 of query q" in health.error
    assert "No space left" in health.error
    disk.is_full = False
    site.settle()
    assert values_in(tmp_path / "out.jsonl") == [1, 2]
    assert site.health().problems == []


def test_a_sink_that_was_given_up_is_cut_back_and_can_be_resumed(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch, errno.EPERM)
    site.execute(SCRIPT)
    site.write_to("q", "out.jsonl")
    site.push("S", rows((1, 1), (2, 2)))
    site.settle()
    disk.is_full = True
    site.push("S", rows((3, 3)))
    site.settle()
    assert values_in(tmp_path / "out.jsonl") == [1]
    assert site.health().ok
    (problem,) = site.health().problems
    assert "sink-1 of query q (out.jsonl) was given up: PermissionError" in problem
    disk.is_full = False
    (tmp_path / "out.jsonl").write_text((tmp_path / "out.jsonl").read_text() + '{"torn')
    assert site.write_to("q", "out.jsonl") == "sink-1"
    site.push("S", rows((4, 4)))
    site.settle()
    assert values_in(tmp_path / "out.jsonl") == [1, 3]  # 2 came while it was not there
    assert site.health().problems == []


def test_a_sink_that_can_not_be_opened_again_keeps_nobody_from_starting(
    open_here: OpenSite, tmp_path: Path
) -> None:
    site = open_here()
    site.execute(SCRIPT)
    site.write_to("q", "out.jsonl")
    site.push("S", rows((1, 1), (2, 2)))
    site.settle()
    site.close()
    (tmp_path / "out.jsonl").write_text("")
    again = open_here()
    again.push("S", rows((3, 3)))
    again.settle()
    assert said(again, "q") == [(1, "+", 1), (2, "+", 2)]
    (problem,) = again.health().problems
    assert "has 0 bytes" in problem


def test_a_sink_whose_disk_is_not_there_at_a_start_is_waited_for(
    open_here: OpenSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = open_here()
    site.execute(SCRIPT)
    site.write_to("q", "out.jsonl")
    site.push("S", rows((1, 1), (2, 2)))
    site.settle()
    site.close()
    opened, is_there = os.open, threading.Event()

    def open_file(path: Path, *rest: int) -> int:
        if Path(path).name == "out.jsonl" and not is_there.is_set():
            raise OSError(errno.EIO, "no disk")
        return opened(path, *rest)

    monkeypatch.setattr("thalweg.engine.sinks.append.os.open", open_file)
    again = open_here()
    again.push("S", rows((3, 3)))
    while again.ticker.attempts < 4:
        time.sleep(0.01)
    assert not again.health().ok
    is_there.set()
    again.settle()
    assert values_in(tmp_path / "out.jsonl") == [1, 2]


def test_a_panic_in_a_sink_is_a_failure_like_others(site: Site) -> None:
    def panic(_: Emission) -> None:
        pl.Series([2**31 - 1], dtype=pl.Int32).cast(pl.Date).to_list()

    site.execute(SCRIPT)
    site.attach("q", "broken", CallbackSink(panic))
    site.push("S", rows((1, 1), (2, 2)))
    site.settle()
    assert said(site, "q") == [(1, "+", 1)]
    assert site.ticker.is_alive()
    (problem,) = site.health().problems
    assert "PanicException: out-of-range date" in problem
