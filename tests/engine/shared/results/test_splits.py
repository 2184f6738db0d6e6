"""Members of a group that other nodes read: cut together, the same rows as one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from thalweg.cql import compile_script
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.results import archive as archive_module
from thalweg.engine.shared.results.archive import Archive

STREAM = "CREATE STREAM S (k BIGINT, v VARCHAR) TIMESTAMP BY ts BIGINT"
PARTS = ((0, 10), (10, 30), (25, 40))  # two overlap; nobody wants 40 and above


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[SharedEngine]:
    made = SharedEngine(tmp_path, durable=False)
    (stream,) = compile_script(STREAM).catalog.streams()
    made.add_stream(stream)
    yield made
    made.close()


def begin(engine: SharedEngine, prefix: str, parts: tuple[tuple[int, int], ...] = PARTS) -> None:
    (stream,) = compile_script(STREAM).catalog.streams()
    text = "; ".join(
        f'CREATE QUERY "{prefix}{low}" AS SELECT ISTREAM "_instant", "_position", k, v '
        f"FROM S [Range 5] WITH POSITION WHERE k >= {low} AND k < {high}"
        for low, high in parts
    )
    catalog = compile_script(STREAM).catalog
    assert catalog.find("S") == stream
    engine.add_queries(compile_script(text, catalog).queries)


def push(engine: SharedEngine, first: int) -> None:
    ts = [first + i // 10 for i in range(100)]
    k = [(7 * i) % 50 for i in range(100)]
    engine.push("S", pl.DataFrame({"ts": ts, "k": k, "v": [f"{i}" for i in range(100)]}))
    engine.tick()


def said(archive: Archive, query: str, since: int = 0) -> list[tuple[Any, ...]]:
    return [row for page in archive.pages(query, since) for row in page.rows.iter_rows()]


def test_cut_together_they_are_what_they_are_one_by_one(engine: SharedEngine) -> None:
    begin(engine, "pub/")
    begin(engine, "own/")
    for first in (0, 10, 20):
        push(engine, first)
    for low, high in PARTS:
        rows = said(engine.archive, f"pub/{low}")
        assert rows == said(engine.archive, f"own/{low}")
        assert rows
        assert all(low <= row[4] < high for row in rows)
    assert said(engine.archive, "pub/0") == said(engine.archive, "own/0"), "and again"


def test_a_tick_is_cut_once_for_all_of_them(
    engine: SharedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(engine, "pub/")
    push(engine, 0)
    reads: list[int] = []
    whole = archive_module.Results.group_rows

    def counted(self: Any, segments: Any, op: Any) -> pl.DataFrame:
        reads.append(len(segments))
        return whole(self, segments, op)

    monkeypatch.setattr(archive_module.Results, "group_rows", counted)
    for low, _ in PARTS:
        said(engine.archive, f"pub/{low}")
    assert len(reads) == 2, "what started, and what ended"


def test_one_who_comes_later_is_cut_with_the_others(engine: SharedEngine) -> None:
    begin(engine, "pub/")
    push(engine, 0)
    begin(engine, "pub/late", ((0, 10), (10, 30)))
    begin(engine, "own/late", ((0, 10), (10, 30)))
    for first in (10, 20):
        push(engine, first)
    for low in (0, 10):
        assert said(engine.archive, f"pub/late{low}") == said(engine.archive, f"own/late{low}")
        before = [row for row in said(engine.archive, f"pub/{low}") if row[0] < 9]
        assert before


def test_only_ticks_beyond_an_instant_are_read(engine: SharedEngine) -> None:
    begin(engine, "pub/")
    for first in range(0, 200, 10):
        push(engine, first)
    everything = said(engine.archive, "pub/0")
    pages = list(engine.archive.pages("pub/0", 150))
    assert {page.low for page in pages} == set(range(149, 199, 10))
    tail = [row for page in pages for row in page.rows.iter_rows()]
    assert tail == [row for row in everything if row[0] >= 149]
