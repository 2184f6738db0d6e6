"""A folder that grows: each file once, across failures and restarts."""

import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.sources.files.recordings import numbered, rows, write, write_many
from tests.engine.sources.landings import Landed

from thalweg.engine.sources import open_source


class Watching:
    """A live source on a thread of its own, until `with` ends."""

    def __init__(self, tmp_path: Path, spark: SparkSession, form: str = "csv") -> None:
        self.stream = numbered("in")
        self.taken = Landed(tmp_path / "data", self.stream)
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


def test_a_batch_that_fails_half_way_is_completed_when_it_comes_again(tmp_path, spark):
    write_many(tmp_path / "in", "csv", [0, 100, 130, 250])
    with Watching(tmp_path, spark) as first:
        real, calls = first.taken.feed.push, iter(range(100))

        def failing(*args, **options):
            if next(calls) == 4:
                raise OSError("no space left")
            return real(*args, **options)

        first.taken.feed.push = failing
        first.wait_for(1000)
        assert "no space left" in str(first.error)
        landed = len(first.taken.rows)
    with Watching(tmp_path, spark) as again:
        assert again.wait_for(250) == rows(0, 250)
    assert 0 < landed < 250


def test_what_is_appended_to_a_file_that_was_read_is_told(tmp_path, spark):
    write_many(tmp_path / "in", "csv", [0, 10])
    with Watching(tmp_path, spark) as watching:
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
