"""Few results of a tick stand in the file of its state: one file to make durable, one put."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.engine.shared.adapter import Collect

from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.state.remote import objects
from thalweg.engine.shared.state.remote.objects import objects_at
from thalweg.engine.shared.tick import task

SCRIPT = """
CREATE STREAM S (k BIGINT) TIMESTAMP BY ts BIGINT;
CREATE STREAM T (k BIGINT) TIMESTAMP BY ts BIGINT;
CREATE QUERY pairs AS SELECT S.k FROM S [Range 5], T [Now] WHERE S.k = T.k;
CREATE QUERY low AS SELECT ISTREAM k FROM S [Now] WHERE k < 3;
CREATE QUERY lower AS SELECT ISTREAM k FROM S [Now] WHERE k < 2;
"""
QUERIES = ("pairs", "low", "lower")


class Running:
    def __init__(self, folder: Path, **options: object) -> None:
        self.outlet = Collect()
        self.engine = SharedEngine(folder, outlet=self.outlet, durable=False, **options)
        compiled = compile_script(SCRIPT)
        for stream in compiled.catalog.streams():
            self.engine.add_stream(stream)
        self.engine.add_queries(compiled.queries)

    def tick(self, number: int, rows: int = 10) -> None:
        stamps = pl.int_range(number * rows, (number + 1) * rows, eager=True)
        for stream in ("S", "T"):
            keys = stamps - number * rows
            self.engine.push(stream, pl.DataFrame({"ts": stamps, "k": keys}))
        self.engine.tick()

    def files(self, folder: str) -> set[str]:
        path = self.engine.folder / folder
        return {p.name for p in path.iterdir()} if path.exists() else set()

    def said(self, query: str) -> list[tuple]:
        return [row for e in self.engine.emissions(query) for row in e.rows.rows()]


def test_a_small_tick_leaves_one_file_and_a_large_one_two(tmp_path: Path) -> None:
    small, large = Running(tmp_path / "small"), Running(tmp_path / "large")
    small.tick(0)
    large.tick(0, rows=20_000)
    assert (len(small.files("segments")), len(small.files("results"))) == (1, 0)
    assert (len(large.files("segments")), len(large.files("results"))) == (1, 1)


def test_results_are_the_same_wherever_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, apart = Running(tmp_path / "together"), Running(tmp_path / "apart")
    for number in range(6):
        together.tick(number)
    monkeypatch.setattr(task, "FEW", 0)
    for number in range(6):
        apart.tick(number)
    assert apart.files("results")
    for query in QUERIES:
        assert together.said(query) == apart.said(query) != []
    assert together.outlet.results == apart.outlet.results


def test_files_stay_while_results_in_them_are_retained_and_go_then(tmp_path: Path) -> None:
    running = Running(tmp_path, retained_ticks=4)
    for number in range(20):
        running.tick(number)
        bundles = running.engine.store.outputs.files_of_state()
        assert bundles <= running.files("segments")
    assert len(running.files("segments")) <= 6
    running.engine.close()
    again = Running(tmp_path, retained_ticks=4)
    before = again.said("pairs")
    assert before
    again.tick(20)
    assert again.said("pairs")[: len(before) // 2] != []
    assert again.engine.store.outputs.files_of_state() <= again.files("segments")


def test_an_empty_machine_finds_results_in_files_of_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And in a store, each task has put one object a tick."""
    monkeypatch.setattr(objects, "_DISCARDED_AT_ONCE", 1)
    url = (tmp_path / "store").as_uri()
    (tmp_path / "store").mkdir()
    here = Running(tmp_path / "here", objects=url, retained_ticks=4)
    for number in range(3):
        before = _puts(url)
        here.tick(number)
        assert _puts(url) - before == {f"segments/{f}" for f in _of_tick(number + 1, here)}
    said = {query: here.said(query) for query in QUERIES}
    here.engine.close()
    there = Running(tmp_path / "there", objects=url, retained_ticks=4)
    assert {query: there.said(query) for query in QUERIES} == said
    for number in range(3, 20):
        there.tick(number)
    left = {key.removeprefix("segments/") for key in objects_at(url).keys("segments/")}
    assert there.engine.store.outputs.files_of_state() <= left
    assert len(left) <= 6


def _puts(url: str) -> set[str]:
    return {k for k in objects_at(url).keys("") if k.split("/")[0] in ("segments", "results")}


def _of_tick(number: int, running: Running) -> set[str]:
    return {f for f in running.files("segments") if f.startswith(f"{number:010d}-")}
