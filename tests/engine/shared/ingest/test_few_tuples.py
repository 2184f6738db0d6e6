"""Few tuples wait for their tick in the book itself, many in a file; what is said is the same."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.engine.shared.adapter import Collect

from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.ingest import landing

SCRIPT = """
CREATE STREAM S (k BIGINT, text VARCHAR) TIMESTAMP BY ts BIGINT;
CREATE QUERY q AS SELECT ISTREAM k, text FROM S [Now];
"""


class Running:
    def __init__(self, folder: Path, **options: object) -> None:
        self.outlet = Collect()
        self.engine = SharedEngine(folder, outlet=self.outlet, durable=False, **options)
        compiled = compile_script(SCRIPT)
        for stream in compiled.catalog.streams():
            self.engine.add_stream(stream)
        self.engine.add_queries(compiled.queries)

    def push(self, first: int, rows: int, text: str = "x") -> None:
        stamps = pl.int_range(first, first + rows, eager=True)
        texts = pl.Series([text] * rows)
        self.engine.push("S", pl.DataFrame({"ts": stamps, "k": stamps, "text": texts}))

    def files(self) -> int:
        folder = self.engine.folder / "landed"
        return len(list(folder.iterdir())) if folder.exists() else 0

    def said(self) -> list[int]:
        self.engine.finish("S")
        self.engine.run_to_end()
        found = [e.rows["c0"].to_list() for e in self.engine.emissions("q")]
        return [k for rows in found for k in rows]


def test_few_tuples_make_no_file_and_many_do(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.push(0, 10)
    assert running.files() == 0
    running.push(10, 100_000)
    assert running.files() == 1
    running.push(100_010, 5)
    assert running.said() == list(range(100_015))
    assert running.files() == 0
    assert running.engine.store.all("SELECT * FROM landed_content") == []


def test_what_waits_in_the_book_is_there_after_a_restart(tmp_path: Path) -> None:
    before = Running(tmp_path)
    before.push(0, 3, "é" * 100)
    before.engine.close()
    again = Running(tmp_path)
    again.push(3, 2)
    assert again.said() == [0, 1, 2, 3, 4]


def test_the_book_takes_only_so_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick's tasks get all of it along with what they have to do."""
    monkeypatch.setattr(landing, "MOST", 10_000)
    running = Running(tmp_path)
    for number in range(20):
        running.push(100 * number, 100)
    assert running.engine.store.inputs.bytes_in_book() <= 10_000
    assert running.files() > 10
    assert running.said() == list(range(2_000))


def test_a_dropped_stream_leaves_nothing_in_the_book(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.push(0, 10)
    running.engine.drop_query("q")
    running.engine.drop_stream("S")
    assert running.engine.store.all("SELECT * FROM landed_content") == []
