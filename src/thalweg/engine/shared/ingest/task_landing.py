"""Landing where the tuples are: a task types, judges and writes them; the driver only lists.

The driver tells the task how its partition stands (`Place`): nobody else brings tuples of it. What
the task has written counts when the driver lists it, in one transaction with where the source goes
on. If the partition or the stream's floor has moved meanwhile, so that the task has judged by what
is no longer so, nothing is listed (`Moved`), and the source reads the same tuples again.

Tasks know nothing of Spark here.
"""

from __future__ import annotations

import uuid

import msgspec
import polars as pl

from thalweg.engine.shared.frames import POS, TS
from thalweg.engine.shared.ingest.normalise import ROW, normalise
from thalweg.engine.shared.ingest.side_files import lines_of
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.segments import BundleWriter, Section
from thalweg.plan.catalog import StreamDef
from thalweg.plan.windows import BEGINNING

PARTITION_BITS = 44  # a position is the partition's number, then its own count


class Moved(Exception):
    """What a task judged by is no longer so: nothing of its work was kept."""


class Place(msgspec.Struct, frozen=True):
    """How a partition stands when a task begins, and the stream's floor then."""

    newest: int
    position: int
    floor: int


class Piece(msgspec.Struct, frozen=True):
    """Accepted tuples in a file, the oldest of them, and the partition's newest behind them."""

    section: Section
    rows: int
    low: int
    newest: int


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

    @property
    def files(self) -> list[str]:
        return [*{p.section.file for p in self.pieces}, *filter(None, (self.late, self.rejected))]


class TaskLanding:
    """One partition's tuples, batch by batch, in order."""

    def __init__(self, stream: StreamDef, folder: Folder, partition: int, place: Place) -> None:
        self._stream, self._folder, self._partition, self._place = stream, folder, partition, place
        self._name = uuid.uuid4().hex  # a task that is run again has files of its own
        self._writer = BundleWriter(folder, f"{self._name}.arrow")
        self._newest, self._rows = place.newest, 0
        self._pieces: list[Piece] = []
        self._late: list[str] = []
        self._rejected: list[str] = []

    def take(self, batch: pl.DataFrame) -> None:
        typed = normalise(self._stream, batch)
        first = (self._partition << PARTITION_BITS) + self._place.position + self._rows
        rows = typed.rows.with_columns((first + pl.col(ROW)).alias(POS))
        is_late = rows[TS] < self._late_below(rows)
        accepted = rows.filter(~is_late)
        self._rows += batch.height
        if rows.height:
            self._newest = max(self._newest, int(rows[TS].max()))  # type: ignore[arg-type]
        if accepted.height:
            low = int(accepted[TS].min())  # type: ignore[arg-type]
            section = self._writer.write(accepted.drop(ROW))
            self._pieces.append(Piece(section, accepted.height, low, self._newest))
        self._late += lines_of(batch, rows.filter(is_late)[ROW].to_list(), {})
        reasons = dict(typed.rejected.iter_rows())
        self._rejected += lines_of(batch, list(reasons), reasons)

    def _late_below(self, rows: pl.DataFrame) -> pl.Series:
        own = newest_before(rows, self._newest) - self._stream.lateness
        return own.clip(lower_bound=self._place.floor)

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


def newest_before(rows: pl.DataFrame, newest: int) -> pl.Series:
    """For each row the newest timestamp before it in its partition."""
    return rows[TS].cum_max().shift(1, fill_value=BEGINNING).clip(lower_bound=newest)
