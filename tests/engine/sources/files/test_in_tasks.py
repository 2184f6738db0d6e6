"""What tasks land of files is what one reader lands, to the row: tuples, positions, late and
rejected rows, and where it goes on; however files are cut, and wherever a restart falls."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.engine.sources.landings import Landed, stream_of

from thalweg.engine.shared.ingest.waiting import waiting
from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.feed import Feed
from thalweg.engine.sources.files import in_tasks, opening
from thalweg.engine.sources.files.direct import DirectReader
from thalweg.engine.sources.files.file_task import Errand, LandRange
from thalweg.engine.sources.files.in_tasks import FilesInTasks
from thalweg.engine.sources.files.locate import locate
from thalweg.engine.sources.files.ranges import offset_behind
from thalweg.engine.sources.files.source import FileSource
from thalweg.engine.sources.options import Options
from thalweg.engine.sources.rows import columns_of
from thalweg.plan.catalog import StreamDef

FORMS = ("csv", "csv.gz", "json", "parquet")


def stream(source: str, lateness: int, options: str = "") -> StreamDef:
    given = f" OPTIONS ({options})" if options else ""
    return stream_of(
        f"CREATE STREAM S (n BIGINT, text VARCHAR) TIMESTAMP BY ts LATENESS {lateness} "
        f"FROM '{source}'{given}"
    )


def write(folder: Path, form: str, seed: int, files: int = 3) -> None:
    """Instants that go up and down, values that do not fit, lines that are no rows, blank ones."""
    drawn = random.Random(seed)
    folder.mkdir()
    now, number = 0, 0
    for file in range(files):
        rows = []
        for _ in range(drawn.choice((0, 40, 400))):
            now, number = now + drawn.choice((0, 1, 1, 2)), number + 1
            late = drawn.choice((0, 0, 0, 0, 3, 60))
            rows.append({"ts": now - late, "n": number, "text": f"té{number}"})
        path = folder / f"part-{file}.{form}"
        if form == "parquet":
            schema = {"ts": pl.Int64, "n": pl.Int64, "text": pl.String}
            pl.DataFrame(rows, schema).write_parquet(path, row_group_size=37)
            continue
        text = "\n".join(_lines(form, rows, drawn))
        data = text.encode() + (b"" if drawn.random() < 0.5 or not text else b"\n")
        path.write_bytes(gzip.compress(data) if form.endswith("gz") else data)


def _lines(form: str, rows: Sequence[dict[str, Any]], drawn: random.Random) -> list[str]:
    lines = []
    for row in rows:
        if drawn.random() < 0.03:
            row = {**row, "n": "oops"}
        if drawn.random() < 0.03:
            lines.append(drawn.choice(("nonsense", "", '{"ts": "x"}', "[1]", "1,2,3,4")))
        lines.append(json.dumps(row) if form == "json" else f"{row['ts']},{row['n']},{row['text']}")
    return lines if form == "json" or not rows else ["ts,n,text", *lines]


def here(task: LandRange, errands: Sequence[Errand]) -> list[bytes]:
    """Side by side, that is, in any order."""
    order = list(range(len(errands)))
    random.Random(len(errands)).shuffle(order)
    found = {i: task(errands[i]) for i in order}
    return [found[i] for i in range(len(errands))]


def source(of: StreamDef, folder: Path, bytes_: int | None = None, run=here) -> FileSource:
    form, place, by_file = opening._settled(of, locate(of.source, folder), _options(of))
    reader = DirectReader(form.name, list(columns_of(of)), 50)
    tasks = None
    if bytes_ is not None:
        tasks = FilesInTasks(form, run, slots=2, rows_per_piece=50)
        tasks.least_bytes, tasks.range_bytes, tasks.round_bytes = 0, bytes_, 4 * bytes_
    return FileSource(place, reader, form.lines(), by_file=by_file, tasks=tasks)


def _options(of: StreamDef) -> Options:
    return Options(of)


def everything(taken: Landed) -> dict[str, Any]:
    engine = taken.engine
    frames = [
        frame.filter(pl.col("_ts") >= x.floor).with_columns(pl.col("_pos") + x.shift)
        for _, x, frame in waiting(engine.store)
    ]
    aside = {
        str(p.relative_to(engine.folder)): [_shown(line) for line in p.read_text().splitlines()]
        for kind in ("late", "rejects")
        for p in sorted((engine.folder / kind).glob("*"))
    }
    return {
        "rows": [row for frame in frames for row in frame.sort("_pos").rows()],
        "partitions": engine.store.inputs.partitions(),
        "aside": aside,
        "backlog": engine.landing.backlog(),
        "files": {p.name for p in engine.landing.folder.here.iterdir()}
        == engine.store.inputs.landed_files(),
    }


def _shown(line: str) -> Any:
    """Whether a number is shown as text depends on what stands beside it in its block."""
    entry = json.loads(line)
    if isinstance(entry["row"], dict):
        entry["row"] = {name: str(value) for name, value in entry["row"].items()}
    return entry


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(6))
def test_tasks_land_what_one_reader_lands(tmp_path: Path, form: str, seed: int):
    write(tmp_path / "in", form, seed)
    of = stream("in", (0, 5, 100)[seed % 3], "partitions 'file'" if seed % 2 else "")
    expected = everything(Landed(tmp_path / "one", of).run(source(of, tmp_path)))
    bytes_ = (64, 700, 5_000)[seed // 2]
    found = everything(Landed(tmp_path / "many", of).run(source(of, tmp_path, bytes_)))
    assert found == expected


class StopsAfter:
    """A source's tasks that are stopped behind so many jobs, as by a kill: nothing of the job that
    was running is kept."""

    def __init__(self, jobs: int) -> None:
        self.left = jobs

    def __call__(self, task: LandRange, errands: Sequence[Errand]) -> list[bytes]:
        reports = here(task, errands)
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        return reports


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(6))
def test_a_restart_goes_on_behind_the_last_round(tmp_path: Path, form: str, seed: int):
    write(tmp_path / "in", form, seed)
    of = stream("in", 5)
    expected = everything(Landed(tmp_path / "one", of).run(source(of, tmp_path)))
    taken = Landed(tmp_path / "many", of)
    with suppress(KeyboardInterrupt):  # it may come to its end before
        taken.run(source(of, tmp_path, 300, StopsAfter(seed)))
    taken.close()
    # From here on in one reader, in larger ranges, or as before.
    taken = Landed(tmp_path / "many", of)
    taken.engine.landing.sweep()
    taken.run(source(of, tmp_path, (None, 1_000, 300)[seed % 3]))
    assert everything(taken) == expected


@pytest.mark.parametrize("form", FORMS)
def test_tasks_go_on_behind_what_one_reader_has_landed(tmp_path: Path, form: str):
    write(tmp_path / "in", form, 5)
    of = stream("in", 5)
    expected = everything(Landed(tmp_path / "one", of).run(source(of, tmp_path)))
    taken = Landed(tmp_path / "many", of)
    push, left = Feed.push, [3]

    class Interrupted(Feed):
        def push(self, *args: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return push(self, *args, **options)

    with suppress(KeyboardInterrupt):
        source(of, tmp_path).run(Interrupted(taken.engine, of))
    taken.run(source(of, tmp_path, 300))
    assert everything(taken) == expected


def test_a_floor_that_rises_meanwhile_makes_the_round_be_read_again(tmp_path: Path):
    write(tmp_path / "in", "csv", 3)
    of = stream("in", 1_000)
    taken = Landed(tmp_path / "data", of)
    jobs = []

    def rising(task: LandRange, errands: Sequence[Errand]) -> list[bytes]:
        reports = here(task, errands)
        if not jobs:  # a tick is written down while the tasks run
            taken.engine.store.inputs.raise_floors({"S": 200})
        jobs.append(len(errands))
        return reports

    taken.run(source(of, tmp_path, 100_000, rising))
    pushed = Landed(tmp_path / "pushed", of)
    pushed.engine.store.inputs.raise_floors({"S": 200})
    pushed.run(source(of, tmp_path))
    assert len(jobs) == 2
    assert everything(taken) == everything(pushed)


def test_files_that_tasks_cannot_open_are_read_by_the_driver(tmp_path: Path):
    write(tmp_path / "in", "csv", 1)
    of = stream("in", 5)
    expected = everything(Landed(tmp_path / "one", of).run(source(of, tmp_path)))
    blind = source(of, tmp_path, 300, lambda task, errands: [b"" for _ in errands])
    assert everything(Landed(tmp_path / "many", of).run(blind)) == expected


def test_a_file_without_the_columns_is_told_before_a_task_reads_it(tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("ts,other\n1,2\n")
    of = stream("in", 5)
    with pytest.raises(SourceError, match="has no column n"):
        Landed(tmp_path / "data", of).run(source(of, tmp_path, 300))


@pytest.mark.parametrize("lines", [0, 1, 2, 7, 100])
def test_where_a_line_ends(tmp_path: Path, lines: int, monkeypatch: pytest.MonkeyPatch):
    text = b"".join(b"x" * (i % 5) + b"\n" for i in range(8)) + b"rest"
    (tmp_path / "a").write_bytes(text)
    monkeypatch.setattr("thalweg.engine.sources.files.ranges._READ", 3)
    expected = sum(len(line) + 1 for line in text.split(b"\n")[: min(lines, 8)])
    assert offset_behind(str(tmp_path / "a"), lines) == (expected if lines < 9 else len(text))


def test_on_spark_large_files_are_landed_by_tasks(tmp_path: Path, spark, monkeypatch):
    monkeypatch.setattr(in_tasks, "LEAST_BYTES", 0)
    monkeypatch.setattr(in_tasks, "SMALLEST_RANGE", 500)
    monkeypatch.setattr(in_tasks, "ROUND_BYTES", 2_000)
    write(tmp_path / "in", "json", 5)
    of = stream("in", 5)
    expected = everything(Landed(tmp_path / "one", of).run(source(of, tmp_path)))
    made = opening.open_files(of, "in", tmp_path, spark, live=False, rows_per_batch=50)
    read = []
    monkeypatch.setattr(DirectReader, "parts", lambda *_: read.append(1) or iter(()))
    assert everything(Landed(tmp_path / "many", of).run(made)) == expected
    assert not read
