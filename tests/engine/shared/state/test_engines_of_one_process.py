"""Engines of one process tick at the same time, each on its thread: what they share in memory."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from thalweg.engine.shared.frames import H
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.loaded import Loaded
from thalweg.engine.shared.state.names import Table
from thalweg.engine.shared.state.segments import BundleWriter, Segment, SegmentReader


class Meanwhile(set[str]):
    """Names; while they are looked at, another thread does something, or waits until it may."""

    def __init__(self, names: set[str], deed: Callable[[], object]) -> None:
        super().__init__(names)
        self.thread = threading.Thread(target=deed)

    def __contains__(self, name: object) -> bool:
        if self.thread.ident is None:
            self.thread.start()
            self.thread.join(0.5)
        return super().__contains__(name)


def segment(folder: Folder, number: int) -> Segment:
    writer = BundleWriter(folder, f"b{number}")
    frame = pl.DataFrame({H: [number]}, schema={H: pl.UInt64})
    made = writer.add(Table("t"), frame, 0, 1)
    writer.close()
    return made


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Folder, Folder]:
    one, other = Folder(str(tmp_path / "one")), Folder(str(tmp_path / "other"))
    return one, other


def test_one_maps_segments_while_another_forgets_its_own(folders: tuple[Folder, Folder]) -> None:
    one, other = folders
    reader, theirs = SegmentReader(), [segment(other, n) for n in range(3)]
    mine = [segment(one, n) for n in range(3)]
    for found in mine:
        reader.read(one, found)
    kept = Meanwhile({"b1"}, lambda: [reader.read(other, s) for s in theirs])
    reader.keep_only(one, kept)
    kept.thread.join()
    assert {(path, bundle) for path, bundle, _ in reader._mapped} == {
        (one.path, "b1"),
        *((other.path, s.bundle) for s in theirs),
    }


def test_one_loads_files_while_another_forgets_its_own(folders: tuple[Folder, Folder]) -> None:
    one, other = folders
    for folder in folders:
        for name in ("a", "b"):
            folder.new(name).write_bytes(pickle.dumps(f"{name} of {folder.path}"))
    loaded: Loaded[str] = Loaded()
    first = loaded.load(one, "a")
    assert loaded.load(one, "b") == f"b of {one.path}"
    kept = Meanwhile({"a"}, lambda: [loaded.load(other, n) for n in ("a", "b")])
    loaded.keep_only(one, kept)
    kept.thread.join()
    other_was = loaded.load(other, "b")
    loaded.keep_only(one, {"a"})
    assert loaded.load(one, "a") is first, "read once"
    assert loaded.load(other, "b") is other_was, "what one is done with, another still has"
