"""What Spark's tasks do with the files they read: set their rows down in pieces, in order.

Spark packs and schedules the splits of files as it likes, so rows reach the driver in any order.
Each piece therefore says which file it is from, where in the file its split begins, and which one
it is of that split. Runs in Spark's Python workers, and knows nothing of Spark.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

FILE, START, LINE = "_file", "_start", "value"
_LINE_END, _NOTHING = pa.scalar(b"\n", pa.large_binary()), pa.scalar(b"", pa.large_binary())
PIECES = pa.schema(
    [("file", pa.string()), ("start", pa.int64()), ("number", pa.int64()), ("path", pa.string())]
)


@dataclass(slots=True)
class Stager:
    """Writes rows of one split after the other; a piece has at most `rows_per_piece`."""

    folder: str
    rows_per_piece: int
    split: tuple[str, int] | None = None
    number: int = 0
    held: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0

    def pieces(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for split, run in _runs(batch):
                if split != self.split:
                    yield from self._written()
                    self.split, self.number = split, 0
                while run.num_rows:
                    taken = min(run.num_rows, self.rows_per_piece - self.rows)
                    self.held.append(run.slice(0, taken))
                    self.rows += taken
                    run = run.slice(taken)
                    if self.rows == self.rows_per_piece:
                        yield from self._written()
        yield from self._written()

    def _written(self) -> Iterator[pa.RecordBatch]:
        if not self.held:
            return
        assert self.split is not None
        path = str(Path(self.folder) / uuid.uuid4().hex)  # a task that is run again has its own
        _write(path, self.held)
        file, start = self.split
        row = {"file": file, "start": start, "number": self.number, "path": path}
        self.number += 1
        self.held, self.rows = [], 0
        yield pa.RecordBatch.from_pylist([row], PIECES)


def stage_pieces(
    folder: str, rows_per_piece: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    return Stager(folder, rows_per_piece).pieces(batches)


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[tuple[str, int], pa.RecordBatch]]:
    """The batch cut where the split changes, without the columns that say so."""
    files, starts = batch.column(FILE), batch.column(START)
    data = batch.select([n for n in batch.schema.names if n not in (FILE, START)])
    changes = pc.or_(pc.not_equal(files[1:], files[:-1]), pc.not_equal(starts[1:], starts[:-1]))
    cuts = [0, *(i + 1 for i in pc.indices_nonzero(changes).to_pylist()), batch.num_rows]
    for begin, end in pairwise(cuts):
        if begin < end:
            yield (files[begin].as_py(), starts[begin].as_py()), data.slice(begin, end - begin)


def _write(path: str, batches: list[pa.RecordBatch]) -> None:
    if batches[0].schema.names == [LINE]:
        with Path(path).open("wb") as out:
            for batch in batches:
                lines = batch.column(0).cast(pa.large_binary())
                out.write(_bytes_of(pc.binary_join_element_wise(lines, _LINE_END, _NOTHING)))
        return
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _bytes_of(texts: pa.LargeBinaryArray) -> memoryview:
    """All texts one after the other."""
    _, offsets, values = texts.buffers()
    ends = memoryview(offsets).cast("q")
    return memoryview(values)[ends[texts.offset] : ends[texts.offset + len(texts)]]
