"""What a source keeps goes with its stream."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest

from thalweg.cql import compile_script
from thalweg.engine.shared.tick.executors import InProcess
from thalweg.engine.site.settings import SiteSettings
from thalweg.engine.site.site import Site
from thalweg.engine.sources.feed import Feed

S = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts BIGINT FROM 'files.csv';"


class Remembering:
    """A source that keeps a checkpoint, and tells what it has found of one."""

    def __init__(self, found: Queue) -> None:
        self.found = found

    def run(self, feed: Feed) -> None:
        checkpoint = feed.folder / "checkpoint"
        before = checkpoint.read_text() if checkpoint.exists() else "nothing"
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        checkpoint.write_text("read up to here")
        self.found.put(before)


@pytest.fixture
def found() -> Queue:
    return Queue()


@pytest.fixture
def open_there(tmp_path: Path, found: Queue) -> Iterator:
    opened: list[Site] = []

    def open_() -> Site:
        site = Site(
            tmp_path / "data",
            compile_script,
            InProcess(),
            open_source=lambda stream, folder: Remembering(found),
            settings=SiteSettings(durable=False, base_folder=tmp_path),
        )
        opened.append(site)
        return site

    yield open_
    for site in opened:
        site.close()


def test_a_source_goes_on_after_a_restart(open_there, found: Queue) -> None:
    site = open_there()
    site.execute(S)
    assert found.get(timeout=300) == "nothing"
    site.close()
    open_there()
    assert found.get(timeout=300) == "read up to here"


@pytest.mark.parametrize("texts", [["DROP STREAM S;", S], ["DROP STREAM S;" + S]])
def test_a_stream_that_is_created_again_reads_from_the_start(
    open_there, found: Queue, texts: list[str], tmp_path: Path
) -> None:
    site = open_there()
    site.execute(S)
    found.get(timeout=300)
    for text in texts:
        site.execute(text)
    assert found.get(timeout=300) == "nothing"
    assert len(list((tmp_path / "data" / "sources").iterdir())) == 1


def test_what_a_crash_in_the_middle_of_drop_leaves_is_nobodys(
    open_there, found: Queue, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site = open_there()
    site.execute(S)
    found.get(timeout=300)
    monkeypatch.setattr("thalweg.engine.site.source_folders.shutil.rmtree", lambda *_, **__: None)
    site.execute("DROP STREAM S")
    monkeypatch.undo()
    site.execute(S)
    assert found.get(timeout=300) == "nothing"
    site.close()
    open_there()
    assert found.get(timeout=300) == "read up to here"
    assert len(list((tmp_path / "data" / "sources").iterdir())) == 1


def test_the_folder_of_an_older_data_directory_is_found(open_there, found: Queue) -> None:
    site = open_there()
    site.execute(S)
    found.get(timeout=300)
    site.engine.store.delete_note("source/S")
    sources = site.engine.folder / "sources"
    site.close()
    (only,) = sources.iterdir()
    only.rename(sources / "S")
    open_there()
    assert found.get(timeout=300) == "read up to here"
