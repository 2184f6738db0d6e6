"""Into the engine: batches are typed, judged, made durable and listed.

A tuple is late if it lies below the watermark of its own partition, or below the stream's floor:
the instant up to which some query's result is final. A tick raises floors when it is written down,
and a batch is judged by them in the transaction that lists it. So a tuple that was accepted has its
effect, whatever ran meanwhile.

Tuples are written to a file before that transaction, which stays short; pushes that come together
share one file and one transaction (`group_commit`). Few tuples are in the transaction itself: to
make a file of their own durable takes longer than all else.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import polars as pl

from thalweg.engine.shared.frames import POS, TS
from thalweg.engine.shared.ingest.arriving import (
    Arriving,
    Declare,
    Finish,
    Positions,
    Promise,
    Push,
    Receipt,
    Take,
)
from thalweg.engine.shared.ingest.batch_ids import Taken, is_known, remember
from thalweg.engine.shared.ingest.group_commit import GroupCommit
from thalweg.engine.shared.ingest.normalise import (
    FURTHEST,
    ROW,
    IngestError,
    normalise,
)
from thalweg.engine.shared.ingest.side_files import lines_of, set_aside
from thalweg.engine.shared.ingest.task_landing import (
    PARTITION_BITS,
    Keys,
    Moved,
    Place,
    Written,
    in_time,
    late_below,
)
from thalweg.engine.shared.state.inputs import Landed, Partition
from thalweg.engine.shared.state.names import LATE, REJECTED
from thalweg.engine.shared.state.segments import BundleWriter, Section, packed
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick.messages import LANDED
from thalweg.plan.catalog import StreamDef
from thalweg.plan.windows import BEGINNING, FOREVER

FEW = 1 << 16  # bytes of a push that go into the book
MOST = 1 << 22  # bytes that wait there for a tick, whose tasks all get them


class Landing:
    """Where batches arrive; one for a data directory. May be called from any thread."""

    def __init__(self, store: Store, *, tasks: int = 1) -> None:
        """`tasks`: into how many large ticks are divided."""
        self.store, self._tasks = store, tasks
        self.folder = store.files / LANDED
        self._commits = GroupCommit(self._commit)

    def push(
        self,
        stream: StreamDef,
        batch: pl.DataFrame,
        *,
        partition: int = 0,
        batch_id: str | None = None,
        positions: Positions | None = None,
        resume: bytes | None = None,
        promise: int | None = None,
    ) -> Receipt:
        """Take a batch; a repeated batch id counts once. Durable when it returns.

        `resume` is kept with it: where the source goes on after a restart (`resume_point`). So is a
        promise that behind it no tuple below an instant will come.
        """
        if promise is not None:
            _check_promise(stream, promise)
        typed = normalise(stream, batch)
        push = Push(stream, partition, batch, typed, batch_id, positions, resume, promise)
        self._commits.submit(push)
        assert push.receipt is not None
        return push.receipt

    def adopt(
        self, stream: StreamDef, batch: pl.DataFrame, positions: Positions, resume: bytes
    ) -> Receipt:
        """Take tuples of the past that were accepted elsewhere, and that no query of this site can
        have missed: late or not, they are there for queries to come."""
        typed = normalise(stream, batch)
        push = Push(stream, 0, batch, typed, None, positions, resume, adopted=True)
        self._commits.submit(push)
        assert push.receipt is not None
        return push.receipt

    def place(self, stream: StreamDef, partition: int) -> Place:
        """What a task has to know that lands tuples of this partition."""
        known = self.store.inputs.partition(stream.name, partition) or Partition()
        return Place(known.newest, known.position, self.store.inputs.floor(stream.name))

    def keys(self, stream: StreamDef) -> Keys:
        """By which a task that lands many tuples has to divide them; none if no tick is divided."""
        return self.store.inputs.stems().get(stream.name, ()) if self._tasks > 1 else ()

    def take(self, stream: StreamDef, parts: Sequence[Written]) -> None:
        """List what tasks have written, all or nothing; durable when it returns. Raises Moved."""
        try:
            self._commits.submit(Take(stream, parts))
        except Moved:
            self.folder.remove(f for part in parts for f in part.files)
            raise
        lines = (f for part in parts for f in (part.late, part.rejected) if f is not None)
        self.folder.remove(lines)

    def heartbeat(self, stream: StreamDef, instant: int, *, partition: int = 0) -> None:
        """A promise that no tuple below the instant will come. Raises IngestError."""
        _check_promise(stream, instant)
        self._commits.submit(Promise(stream, partition, instant))

    def finish(self, stream: StreamDef) -> None:
        """The source has ended: the watermark is infinite."""
        self._commits.submit(Finish(stream))

    def declare(self, stream: StreamDef, partitions: list[int]) -> None:
        """Make partitions known before they say anything: they hold the watermark back."""
        self._commits.submit(Declare(stream, tuple(partitions)))

    def exclusively(self) -> AbstractContextManager[None]:
        """Inside, this thread may push within a transaction of its own, and nobody else does."""
        return self._commits.exclusively()

    def resume_point(self, stream: StreamDef, partition: int = 0) -> bytes | None:
        """What the last batch of the partition said about going on."""
        return self.store.inputs.resume_point(stream.name, partition)

    def backlog(self) -> int:
        """Tuples that have landed and wait for a tick."""
        return self.store.inputs.backlog()

    def sweep(self) -> None:
        """Remove files that the book does not list: of dropped streams, and of a crash."""
        self.folder.sweep(self.store.inputs.landed_files())

    def _commit(self, arriving: Sequence[Arriving]) -> None:
        writer = BundleWriter(self.folder, f"{uuid.uuid4().hex}.arrow")
        group = _Group(self.store, writer)
        for one in arriving:
            group.judge(one)
        writer.close()
        with self.store.transaction():
            group.list_all()


@dataclass
class _Judged:
    """A push as its own partition sees it; the stream's floor comes on top."""

    push: Push
    newest: int  # of its partition, behind it
    own_newest: int
    accepted: pl.DataFrame
    section: Section | None
    content: bytes | None  # in place of the section
    late: list[int]  # places in the batch


@dataclass
class _Group:
    """What arrives together: judged in order, listed in one transaction."""

    store: Store
    writer: BundleWriter
    partitions: dict[tuple[str, int], Partition] = field(default_factory=dict)
    judged: list[_Judged | Landed | tuple[str, Written]] = field(default_factory=list)
    repeated: list[Push] = field(default_factory=list)
    finished: set[str] = field(default_factory=set)
    ids: set[tuple[str, str]] = field(default_factory=set)
    room: int | None = None  # bytes of tuples that the book still takes, once somebody asks

    # --- before the transaction

    def judge(self, arriving: Arriving) -> None:
        stream = arriving.stream
        match arriving:
            case Push():
                self._judge_push(arriving)
            case Promise(_, partition, instant):
                newest = instant + stream.lateness
                self._promise(stream, partition, newest)
            case Finish():
                known = self.store.inputs.partitions_of(stream.name)
                here = [p for s, p in self.partitions if s == stream.name]
                for partition in sorted({*known, *here}) or [0]:
                    self._promise(stream, partition, FOREVER)
                self.finished.add(stream.name)
            case Declare(_, partitions):
                for partition in partitions:
                    self.partitions[stream.name, partition] = self._partition(stream, partition)
            case Take(_, parts):
                for part in parts:
                    self._judge_taken(stream, part)

    def _judge_taken(self, stream: StreamDef, part: Written) -> None:
        before = self._partition(stream, part.partition)
        if (before.newest, before.position) != (part.before.newest, part.before.position):
            raise Moved
        after = Partition(max(before.newest, part.newest), before.position + part.rows)
        self.partitions[stream.name, part.partition] = after
        self.judged.append((stream.name, part))

    def _judge_push(self, push: Push) -> None:
        stream, rows = push.stream, push.typed.rows
        if push.batch_id is not None:
            key = (stream.name, push.batch_id)
            if key in self.ids or is_known(self.store, *key):
                self.repeated.append(push)
                return
            self.ids.add(key)
        before = self._partition(stream, push.partition)
        if push.positions is None:
            first = (push.partition << PARTITION_BITS) + before.position
            rows = rows.hstack([(rows[ROW] + first).alias(POS)])
        else:
            places = pl.Series(POS, push.positions, dtype=pl.Int64)
            rows = rows.with_columns(places.gather(rows[ROW]))
        accepted, late = rows, []
        if not push.adopted:
            accepted, late = in_time(rows, late_below(rows, before.newest, stream.lateness))
        section, content = self._write(accepted)
        own = int(rows[TS].max()) if rows.height else BEGINNING  # type: ignore[arg-type]
        promised = BEGINNING if push.promise is None else push.promise + stream.lateness
        newest = max(before.newest, own, promised)
        after = Partition(newest, before.position + push.batch.height)
        self.partitions[stream.name, push.partition] = after
        self.judged.append(_Judged(push, after.newest, own, accepted, section, content, late))

    def _write(self, accepted: pl.DataFrame) -> tuple[Section | None, bytes | None]:
        """To where tuples wait for a tick: a file, or, as bytes, the book."""
        if not accepted.height:
            return None, None
        tuples = accepted[[c for c in accepted.columns if c != ROW]]
        if self.room is None:
            self.room = MOST - self.store.inputs.bytes_in_book()
        if tuples.estimated_size() > min(FEW, self.room):
            return self.writer.write(tuples), None
        content = packed(tuples)
        self.room -= len(content)
        return None, content

    def _promise(self, stream: StreamDef, partition: int, newest: int) -> None:
        before = self._partition(stream, partition)
        after = before._replace(newest=max(before.newest, newest))
        self.partitions[stream.name, partition] = after
        self.judged.append(Landed(stream.name, partition, after.newest, 0))

    def _partition(self, stream: StreamDef, partition: int) -> Partition:
        known = self.partitions.get((stream.name, partition))
        return known or self.store.inputs.partition(stream.name, partition) or Partition()

    # --- inside the transaction

    def list_all(self) -> None:
        inputs = self.store.inputs
        for entry in self.judged:
            match entry:
                case Landed():
                    inputs.land(entry)
                case _Judged():
                    self._list(entry)
                case (name, part):
                    self._list_taken(name, part)
        inputs.write_partitions(self.partitions)
        inputs.raise_floors(dict.fromkeys(self.finished, FOREVER))
        for push in self.repeated:
            push.receipt = Receipt(0, 0, 0, repeated=True)

    def _list(self, judged: _Judged) -> None:
        push, inputs = judged.push, self.store.inputs
        name, partition = push.stream.name, push.partition
        floor = BEGINNING if push.adopted else inputs.floor(name)
        _, below = in_time(judged.accepted, floor)
        accepted = judged.accepted.height - len(below)
        floor = floor if below else BEGINNING
        landed = Landed(name, partition, judged.newest, accepted, judged.section, floor)
        number = inputs.land(landed, content=judged.content)
        if push.batch_id is not None:
            taken = Taken(push.batch_id, name, partition, judged.own_newest)
            with self.store.transaction() as db:
                remember(db, taken, number, judged.newest - push.stream.lateness)
        if push.resume is not None:
            inputs.write_resume_point(name, partition, push.resume)
        late = sorted([*judged.late, *below])
        reasons = dict(push.typed.rejected.iter_rows())
        set_aside(self.store, name, LATE, lines_of(push.batch, late, {}))
        set_aside(self.store, name, REJECTED, lines_of(push.batch, list(reasons), reasons))
        row, reason = next(iter(reasons.items()), (None, None))
        push.receipt = Receipt(accepted, len(late), len(reasons), reason=reason, row=row)

    def _list_taken(self, name: str, part: Written) -> None:
        inputs = self.store.inputs
        floor = inputs.floor(name)
        if any(piece.low < floor for piece in part.pieces):
            raise Moved
        for piece in part.pieces:
            landed = Landed(name, part.partition, piece.newest, piece.rows, piece.section)
            inputs.land(landed._replace(shift=part.shift), piece.divided)
        inputs.write_resume_point(name, part.partition, part.resume)
        for kind, file in ((LATE, part.late), (REJECTED, part.rejected)):
            if file is not None:
                lines = (self.store.files / LANDED).get(file).read_text().splitlines()
                set_aside(self.store, name, kind, lines)
        set_aside(self.store, name, REJECTED, part.told)


def _check_promise(stream: StreamDef, instant: int) -> None:
    if not -FURTHEST <= instant <= FURTHEST:
        raise IngestError(
            f"{stream.name}: {instant} is out of range: an instant is within ±{FURTHEST}"
        )
