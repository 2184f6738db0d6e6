"""Landing where the tuples are: a task types, judges and writes them; the driver only lists.

The driver tells the task how its partition stands (`Place`): nobody else brings tuples of it. Of
tasks that read parts of a partition side by side only the first can know that: the others begin
with nothing, and `in_sequence` works out how things stood. What a task has written counts when the
driver lists it, in one transaction with where the source goes on. If the partition or the stream's
floor has moved meanwhile, so that the task has judged by what is no longer so, nothing is listed
(`Moved`), and the source reads the same tuples again.

Tasks know nothing of Spark here.
"""

from __future__ import annotations

import uuid

import msgspec
import numpy as np
import polars as pl

from thalweg.engine.shared.frames import POS, TS
from thalweg.engine.shared.ingest.normalise import ROW, normalise
from thalweg.engine.shared.ingest.side_files import lines_of
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.names import Table, stem_table
from thalweg.engine.shared.state.segments import BundleWriter, Section
from thalweg.engine.shared.state.stems import divided
from thalweg.plan.catalog import StreamDef
from thalweg.plan.expr import Expr
from thalweg.plan.windows import BEGINNING

Keys = tuple[tuple[Expr, ...], ...]

MANY = 10_000  # tuples that are worth being written once more
PARTITION_BITS = 44  # a position is the partition's number, then its own count


class Moved(Exception):
    """What a task judged by is no longer so: nothing of its work was kept."""


class Place(msgspec.Struct, frozen=True):
    """How a partition stands when a task begins, and the stream's floor then."""

    newest: int
    position: int
    floor: int


class Piece(msgspec.Struct, frozen=True):
    """Accepted tuples in a file, the oldest of them, and the partition's newest behind them;
    `divided` are the same in the order of SteMs."""

    section: Section
    rows: int
    low: int
    newest: int
    divided: dict[Table, Section] = {}


class Written(msgspec.Struct, frozen=True):
    """What a task made of a partition's next tuples; `resume` is where the source goes on.

    Late and rejected tuples are lines of text, in files beside that of the pieces. `told` are
    further ones that the source itself has to report.
    """

    partition: int
    before: Place
    rows: int = 0  # that came
    newest: int = BEGINNING
    pieces: list[Piece] = []
    late: str | None = None
    rejected: str | None = None
    resume: bytes = b""
    told: list[str] = []
    shift: int = 0  # to be added to positions
    lines: int = 0  # of a file, that these tuples are made of

    @property
    def files(self) -> list[str]:
        return [*{p.section.file for p in self.pieces}, *filter(None, (self.late, self.rejected))]


class TaskLanding:
    """One partition's tuples, batch by batch, in order."""

    def __init__(
        self, stream: StreamDef, folder: Folder, partition: int, place: Place, keys: Keys = ()
    ) -> None:
        """`keys` are those by which the stream's SteMs are indexed: many tuples are also written in
        their order, so that a tick's tasks can each read what they own."""
        self._stream, self._folder, self._partition, self._place = stream, folder, partition, place
        self._keys = keys
        self._name = uuid.uuid4().hex  # a task that is run again has files of its own
        self._writer = BundleWriter(folder, f"{self._name}.arrow")
        self._newest, self._rows = place.newest, 0
        self._pieces: list[Piece] = []
        self._late: list[str] = []
        self._rejected: list[str] = []

    def take(self, batch: pl.DataFrame) -> None:
        typed = normalise(self._stream, batch)
        first = (self._partition << PARTITION_BITS) + self._place.position + self._rows
        rows = typed.rows.hstack([(typed.rows[ROW] + first).alias(POS)])
        below = late_below(rows, self._newest, self._stream.lateness)
        accepted, late = in_time(rows, np.maximum(below, self._place.floor))
        self._rows += batch.height
        if rows.height:
            self._newest = max(self._newest, int(rows[TS].max()))  # type: ignore[arg-type]
        if accepted.height:
            low = int(accepted[TS].min())  # type: ignore[arg-type]
            tuples = accepted.drop(ROW)
            section, by = self._writer.write(tuples), self._divided(tuples)
            self._pieces.append(Piece(section, accepted.height, low, self._newest, by))
        self._late += lines_of(batch, late, {})
        reasons = dict(typed.rejected.iter_rows())
        self._rejected += lines_of(batch, list(reasons), reasons)

    def _divided(self, tuples: pl.DataFrame) -> dict[Table, Section]:
        if tuples.height < MANY:
            return {}
        return {
            stem_table(self._stream.name, of): self._writer.write(divided(tuples, of))
            for of in self._keys
        }

    def close(self) -> Written:
        self._writer.close()
        return Written(
            self._partition,
            self._place,
            self._rows,
            self._newest,
            self._pieces,
            self._lines("late", self._late),
            self._lines("rejected", self._rejected),
        )

    def _lines(self, kind: str, lines: list[str]) -> str | None:
        if not lines:
            return None
        name = f"{self._name}.{kind}"
        self._folder.new(name).write_text("".join(line + "\n" for line in lines))
        self._folder.keep(name)
        return name


def late_below(rows: pl.DataFrame, newest: int, lateness: int) -> np.ndarray:
    """For each row the instant below which it is late: by the newest timestamp before it in its
    partition. On arrays, since each call of Polars costs as much as hundreds of rows."""
    stamps = rows[TS].to_numpy()
    before = np.empty_like(stamps)
    before[:1] = newest
    before[1:] = np.maximum(np.maximum.accumulate(stamps)[:-1], newest)
    return before - lateness


def in_time(rows: pl.DataFrame, below: np.ndarray | int) -> tuple[pl.DataFrame, list[int]]:
    """The rows that are not late, and the places of the others in their batch."""
    is_late = rows[TS].to_numpy() < below
    if not is_late.any():
        return rows, []
    mask = pl.Series(is_late)
    return rows.filter(~mask), rows[ROW].filter(mask).to_list()
