"""A large result in parts is the result: cut between instants, in the order of the whole."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from thalweg.engine.shared.results import large
from thalweg.engine.shared.results.large import LargeEmission, Part, parts_of
from thalweg.engine.shared.results.results import in_order
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.names import result_table
from thalweg.engine.shared.state.segments import BundleWriter
from thalweg.engine.sinks.append import AppendedFile
from thalweg.engine.sinks.jsonl import JsonLinesSink


def drawn(folder: Path, seed: int) -> tuple[Part, pl.DataFrame]:
    """What three tasks say, of which one may say nothing."""
    random = np.random.default_rng(seed)
    files = Folder(str(folder), durable=False)
    writer = BundleWriter(files / "results", "0000000001-0-0-x.arrow")
    frames = []
    for height in random.permutation([0, 40, 300]):
        stamps = np.sort(random.integers(5, random.choice((6, 30, 5_000)), height))
        frame = pl.DataFrame(
            {
                "_ts": stamps,
                "_op": pl.Series(np.ones(height), dtype=pl.Int8),
                "c0": random.integers(0, 9, height),
                "c1": [f"é{i % 4}" if i % 7 else None for i in range(height)],
            },
            schema_overrides={"c1": pl.String},
        )
        frame = frame.sort("_ts", "_op", "c0", "c1", nulls_last=False)
        if height:
            writer.add(result_table("q"), frame, 5, 6_000)
            frames.append(frame)
    segments = writer.close()
    return Part("q", 3, ("n", "text"), files, tuple(segments), 5, 6_000), in_order(frames)


@pytest.mark.parametrize("seed", range(12))
def test_parts_are_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int):
    monkeypatch.setattr(large, "A_PART", 25)
    whole, expected = drawn(tmp_path, seed)
    parts = parts_of(whole)
    emissions = [part.emission() for part in parts]
    assert pl.concat([e.rows for e in emissions]).equals(expected)
    assert all(e.rows.height for e in emissions)
    assert [p.low for p in parts[1:]] == [p.upto for p in parts[:-1]]
    assert (parts[0].low, parts[-1].upto) == (whole.low, whole.upto)
    if expected["_ts"].n_unique() > 100:
        assert len(parts) > 5


@pytest.mark.parametrize("seed", range(4))
def test_lines_made_by_tasks_are_those_of_the_sink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
):
    monkeypatch.setattr(large, "A_PART", 25)
    whole, expected = drawn(tmp_path, seed)
    emission = LargeEmission(whole, lambda do, items: [do(i) for i in items], expected.height)
    assert emission.height == expected.height
    for name in ("tasks", "sink"):
        sink = JsonLinesSink(tmp_path / name)
        sink.open(None)
        plain = Part.emission(whole)
        sink.write(emission if name == "tasks" else plain)
        sink.close()
    assert (tmp_path / "tasks").read_bytes() == (tmp_path / "sink").read_bytes()
    assert not list((tmp_path / "encoded").iterdir())


def test_a_file_is_appended_where_the_kernel_cannot_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refused(*_, **__):
        raise OSError("between file systems")

    monkeypatch.setattr("os.copy_file_range", refused)
    (tmp_path / "part").write_bytes(b"more\n")
    file = AppendedFile(tmp_path / "all")
    file.open(None)
    file.append(b"some\n")
    file.append_file(tmp_path / "part")
    assert file.sync() == 10
    assert (tmp_path / "all").read_bytes() == b"some\nmore\n"
