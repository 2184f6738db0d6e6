"""A folder that grows: each file once, across failures and restarts."""

import json
import shutil
import threading
import time
import uuid
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.files.recordings import numbered, rows, write, write_many
from tests.engine.sources.landings import Landed

from thalweg.engine.sources import open_source
from thalweg.engine.sources.files import watch


class Watching:
    """A live source on a thread of its own, until `with` ends."""

    def __init__(
        self, tmp_path: Path, spark: SparkSession | None = None, data: str = "data", url: str = ""
    ) -> None:
        self.stream = numbered("in")
        self.taken = Landed(tmp_path / data, self.stream, objects=url)
        self.error: BaseException | None = None
        source = open_source(self.stream, spark, tmp_path, rows_per_batch=40)
        self._thread = threading.Thread(target=self._run, args=(source,))

    def _run(self, source) -> None:
        try:
            source.run(self.taken.feed)
        except BaseException as error:
            self.error = error

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.taken.stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        self.taken.engine.close()

    def dies_at_push(self, number: int) -> None:
        real, calls = self.taken.feed.push, iter(range(1_000))

        def failing(*args, **options):
            if next(calls) == number:
                raise OSError("no space left")
            return real(*args, **options)

        self.taken.feed.push = failing  # type: ignore[method-assign]

    def wait_for(self, count: int) -> list:
        until = time.monotonic() + 60
        while len(self.taken.rows) < count and time.monotonic() < until and not self.error:
            time.sleep(0.1)
        return self.taken.rows


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_files_are_taken_as_they_appear_and_once_across_a_restart(tmp_path, spark, form):
    write_many(tmp_path / "in", form, [0, 100, 150])
    with Watching(tmp_path, spark) as first:
        assert first.wait_for(150) == rows(0, 150)
        write(tmp_path / "in" / f"late.{form}", 150, 170)
        assert first.wait_for(170) == rows(0, 170)
        assert not first.taken.is_finished
    # First by name: it comes last all the same.
    write(tmp_path / "in" / f"a.{form}", 170, 180)
    with Watching(tmp_path, spark) as again:
        again.wait_for(180)
        time.sleep(1)
        assert again.taken.rows == rows(0, 180)


def test_a_batch_that_fails_half_way_is_completed_when_it_comes_again(tmp_path):
    write_many(tmp_path / "in", "csv", [0, 100, 130, 250])
    first = Watching(tmp_path)
    first.dies_at_push(4)
    with first:
        first.wait_for(1000)
        assert "no space left" in str(first.error)
        landed = len(first.taken.rows)
    with Watching(tmp_path) as again:
        assert again.wait_for(250) == rows(0, 250)
    assert 0 < landed < 250


@pytest.mark.parametrize("on_spark", [False, True])
def test_another_machine_goes_on_in_the_middle_of_a_batch(tmp_path, spark, on_spark):
    """It has the store and an empty disk; files that were read are not there any more."""
    url, master = f"memory:///{uuid.uuid4().hex}", spark if on_spark else None
    write_many(tmp_path / "in", "csv", [0, 100])
    with Watching(tmp_path, master, "a", url) as first:
        assert first.wait_for(100) == rows(0, 100)
    for path in (tmp_path / "in").iterdir():
        path.unlink()
    for name, low in (("x", 100), ("y", 150), ("z", 250)):
        write(tmp_path / "in" / f"{name}.csv", low, {"x": 150, "y": 250, "z": 300}[name])
    second = Watching(tmp_path, master, "b", url)
    second.dies_at_push(3)  # x has landed, and a part of y
    with second:
        second.wait_for(1000)
        assert "no space left" in str(second.error)
        assert 150 < len(second.taken.rows) < 250
    shutil.rmtree(tmp_path / "a")
    shutil.rmtree(tmp_path / "b")
    (tmp_path / "in" / "x.csv").unlink()
    write(tmp_path / "in" / "late.csv", 300, 320)
    with Watching(tmp_path, master, "c", url) as third:
        third.wait_for(320)
        time.sleep(0.5)
        assert third.taken.rows == rows(0, 320)
    with Watching(tmp_path, master, "d", url) as fourth:
        time.sleep(0.5)
        assert fourth.taken.rows == rows(0, 320)
        assert fourth.error is None


def test_a_stream_created_anew_reads_all_files_again(tmp_path):
    write_many(tmp_path / "in", "csv", [0, 100])
    with Watching(tmp_path) as first:
        assert first.wait_for(100) == rows(0, 100)
        first.taken.engine.store.inputs.delete(first.stream.name)
    with Watching(tmp_path) as again:
        assert again.wait_for(100) == rows(0, 100)


def checkpoint_of_spark(folder: Path, entries: list[list[Path]], offsets: int, commits: int):
    """As Structured Streaming has left it: the files of each entry of its source's log."""
    for name in ("sources/0", "offsets", "commits"):
        (folder / name).mkdir(parents=True)
    lines = [
        [{"path": f"file://{quote(str(f))}", "timestamp": 1, "batchId": n} for f in files]
        for n, files in enumerate(entries)
    ]
    for n, some in enumerate(lines):
        name = f"{n}.compact" if n % 10 == 9 else str(n)
        of_file = [line for entry in lines[: n + 1] for line in entry] if n % 10 == 9 else some
        text = "\n".join(["v1", *map(json.dumps, of_file)])
        (folder / "sources/0" / name).write_text(text)
        if n % 10 == 9:
            for old in range(n):
                (folder / "sources/0" / str(old)).unlink()
    for n in range(max(0, offsets - 3), offsets):
        (folder / "offsets" / str(n)).write_text(f'v1\n{{}}\n{{"logOffset":{n}}}')
    for n in range(max(0, commits - 3), commits):
        (folder / "commits" / str(n)).write_text("v1\n{}")


@pytest.mark.parametrize(("offsets", "commits"), [(12, 12), (12, 11), (11, 11)])
def test_a_folder_that_structured_streaming_has_watched_goes_on(tmp_path, offsets, commits):
    files = [tmp_path / "in" / f"a b-{n}.csv" for n in range(12)]
    for n, file in enumerate(files):
        file.parent.mkdir(exist_ok=True)
        write(file, 10 * n, 10 * n + 10)
    folder = tmp_path / "data" / "sources" / "S" / "checkpoint"
    checkpoint_of_spark(folder, [[f] for f in files], offsets, commits)
    with Watching(tmp_path) as watching:
        assert watching.taken.feed.folder == folder.parent
        write(tmp_path / "in" / "new.csv", 120, 130)
        expected = rows(10 * commits, 130)
        assert watching.wait_for(len(expected)) == expected
        time.sleep(0.5)
        assert watching.taken.rows == expected
    assert not folder.exists()


def test_what_is_appended_to_a_file_that_was_read_is_told(tmp_path):
    write_many(tmp_path / "in", "csv", [0, 10])
    with Watching(tmp_path) as watching:
        told: list[str] = []
        watching.taken.feed.warn = told.append
        assert watching.wait_for(10) == rows(0, 10)
        (file,) = (tmp_path / "in").iterdir()
        with file.open("a") as more:
            more.write(file.read_text().splitlines()[-1] + "\n")
        until = time.monotonic() + 60
        while not told and time.monotonic() < until:
            time.sleep(0.1)
    assert "has grown by" in told[0]
    assert "do not count" in told[0]


def test_a_long_batch_does_not_delay_the_next_look(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(watch, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    write_many(tmp_path / "in", "csv", [0, 10])
    watching = Watching(tmp_path)
    waited: list[float] = []
    real, push = watching.taken.feed.wait, watching.taken.feed.push

    def slow(*args, **options):
        clock[0] += 100.0
        return push(*args, **options)

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        return real(0.05)

    watching.taken.feed.push, watching.taken.feed.wait = slow, wait  # type: ignore[method-assign]
    with watching:
        assert watching.wait_for(10) == rows(0, 10)
    assert set(waited) == {watch._LOOK_S}
