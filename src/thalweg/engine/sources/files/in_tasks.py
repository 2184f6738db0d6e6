"""Files read, parsed, judged and written by Spark's tasks; the driver cuts, lists and commits.

A round is some ranges of files, read side by side and committed together, with where the source
goes on. Lateness is settled when all have reported (`ingest.in_sequence`): a range with rows that
are late for what came before it is read once more. So tuples, positions, late and rejected rows are
those that one reader would have landed, row by row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from thalweg.engine.shared.ingest.in_sequence import is_in_question, moved, places
from thalweg.engine.shared.ingest.task_landing import Moved, Place, Written
from thalweg.engine.sources.feed import Feed
from thalweg.engine.sources.files.direct import opened
from thalweg.engine.sources.files.file_task import Errand, LandRange, read_report
from thalweg.engine.sources.files.forms import Form
from thalweg.engine.sources.files.lines import Block
from thalweg.engine.sources.files.locate import File
from thalweg.engine.sources.files.progress import FileProgress
from thalweg.engine.sources.files.ranges import Range, ranges_of
from thalweg.plan.windows import BEGINNING

if TYPE_CHECKING:
    from pyspark import SparkContext

LEAST_BYTES = 8 << 20  # below this, a job costs more than it saves
ROUND_BYTES = 64 << 20
SMALLEST_RANGE, LARGEST_RANGE = 1 << 20, 16 << 20

Jobs = Callable[[LandRange, Sequence[Errand]], list[bytes]]  # runs tasks, gives their reports


class Unreachable(Exception):
    """Tasks can't open a file that the driver can."""


class FilesInTasks:
    """`run` runs a round's tasks, of which `slots` go on at once."""

    def __init__(self, form: Form, run: Jobs, slots: int, rows_per_piece: int) -> None:
        self._form, self._run, self._rows = form, run, rows_per_piece
        self.round_bytes, self.least_bytes = ROUND_BYTES, LEAST_BYTES
        self.range_bytes = min(LARGEST_RANGE, max(SMALLEST_RANGE, ROUND_BYTES // (2 * slots)))

    def pays(self, files: Sequence[File], done: FileProgress | None) -> bool:
        left = sum(f.size for f in files)
        if done is not None and any(f.path == done.file for f in files):
            left -= max(0, done.offset)
        return left >= self.least_bytes

    def read(
        self,
        feed: Feed,
        files: Sequence[File],
        done: FileProgress | None,
        partitions: dict[str, int],
        batch: int,
    ) -> None:
        """Land what the files hold, but for what has landed before; until the feed is stopped.
        Raises Unreachable before anything of a round has landed."""
        reached = {done.file: done.rows} if done is not None else {}
        for round_ in self._rounds(files, done):
            if feed.stopped:
                return
            feed.wait_for_room()
            self._land(feed, round_, partitions, batch, reached)

    # --- rounds

    def _rounds(self, files: Sequence[File], done: FileProgress | None) -> Iterator[list[Range]]:
        found: list[Range] = []
        for range_ in self._ranges(files, done):
            found.append(range_)
            if sum(r.size for r in found) >= self.round_bytes:
                yield found
                found = []
        if found:
            yield found

    def _ranges(self, files: Sequence[File], done: FileProgress | None) -> Iterator[Range]:
        for file in files:
            self._check_head(file)
            rows, offset = 0, 0
            if done is not None and file.path == done.file:
                rows, offset = done.rows, done.offset
            yield from ranges_of(file, self._form.name, self.range_bytes, rows, offset)

    def _check_head(self, file: File) -> None:
        """Says what is wrong with a file's columns, before a task stumbles over it."""
        lines = self._form.lines()
        if lines is None:
            return
        with opened(file.path) as text:
            if head := text.readline():
                lines.begin(Block(file.path, 0, head))

    # --- one round

    def _land(
        self,
        feed: Feed,
        round_: Sequence[Range],
        partitions: dict[str, int],
        batch: int,
        reached: dict[str, int],
    ) -> None:
        """`reached` says how many rows (or lines) of files have landed, now and then behind it."""
        task = LandRange(self._form, feed.landing_folder, self._rows, feed.keys)
        while not feed.stopped:
            errands = self._errands(feed, round_, partitions)
            parts = self._reports(task, errands)
            first = self._firsts(round_, parts, reached)
            parts = self._settled(feed, task, errands, parts, first)
            landed = dict(reached)
            done = []
            for range_, part in zip(round_, parts, strict=True):
                landed[range_.file] = landed.get(range_.file, 0) + part.lines
                at = FileProgress(range_.file, landed[range_.file], batch, _offset(range_))
                done.append(msgspec.structs.replace(part, resume=msgspec.json.encode(at)))
            try:
                feed.take(done)
            except Moved:
                continue  # judged by what is no longer so: the same ranges again
            reached.update(landed)
            return

    def _errands(
        self, feed: Feed, round_: Sequence[Range], partitions: dict[str, int]
    ) -> list[Errand]:
        """The first range of a partition knows how it stands, the others begin with nothing."""
        known: dict[int, Place] = {}
        found = []
        for range_ in round_:
            partition = partitions.get(range_.file, 0)
            place = known.get(partition)
            if place is None:
                known[partition] = place = feed.place(partition)
                found.append(Errand(range_, partition, place))
            else:
                found.append(Errand(range_, partition, Place(BEGINNING, 0, place.floor)))
        return found

    def _reports(self, task: LandRange, errands: Sequence[Errand]) -> list[Written]:
        packed = self._run(task, errands)
        reports = [read_report(report) for report in packed if report]
        if len(reports) < len(errands):
            for report in reports:
                task.folder.remove(report.files)
            missing = next(e for e, report in zip(errands, packed, strict=True) if not report)
            raise Unreachable(missing.range.file)
        return reports

    def _firsts(
        self, round_: Sequence[Range], parts: Sequence[Written], reached: dict[str, int]
    ) -> list[int]:
        """How many lines (or rows) of its file are before each range."""
        counted, found = dict(reached), []
        for range_, part in zip(round_, parts, strict=True):
            first = counted.get(range_.file, 0)
            found.append(first - range_.skip if range_.start == 0 else first)
            counted[range_.file] = first + part.lines
        return found

    def _settled(
        self,
        feed: Feed,
        task: LandRange,
        errands: Sequence[Errand],
        parts: list[Written],
        firsts: Sequence[int],
    ) -> list[Written]:
        """All parts as they stand one behind the other; those in question are read again."""
        before: list[Place] = [p.before for p in parts]
        numbers = range(len(parts))
        for _, of in groupby(sorted(numbers, key=lambda i: parts[i].partition), _partition(parts)):
            row = list(of)
            for i, place in zip(row, places(before[row[0]], [parts[i] for i in row]), strict=True):
                before[i] = place
        late = self._form.stream.lateness
        again = [i for i in numbers if is_in_question(parts[i], before[i], late)]
        if again:
            repeated = [replace(errands[i], place=before[i], first=firsts[i]) for i in again]
            for i, part in zip(again, self._reports(task, repeated), strict=True):
                feed.landing_folder.remove(parts[i].files)
                parts[i] = part
        for i in numbers:
            rejected = parts[i].rejected
            if i not in again and firsts[i] and rejected is not None:
                _count_from(feed.landing_folder.get(rejected), errands[i].range, firsts[i])
        return [moved(part, place) for part, place in zip(parts, before, strict=True)]


def _partition(parts: Sequence[Written]) -> Callable[[int], int]:
    return lambda i: parts[i].partition


def _offset(range_: Range) -> int:
    return range_.end if range_.end >= 0 else range_.size


def _count_from(rejected: Path, range_: Range, first: int) -> None:
    """Lines that are no rows are called by their numbers, which the task counted from 1."""
    begin = f"{range_.file}, line "
    lines = []
    for line in rejected.read_text().splitlines():
        entry = json.loads(line)
        if entry["reason"].startswith(begin):
            number, colon, why = entry["reason"][len(begin) :].partition(":")
            entry["reason"] = f"{begin}{int(number) + first}{colon}{why}"
            line = json.dumps(entry)
        lines.append(line + "\n")
    rejected.write_text("".join(lines))


def on_spark(context: SparkContext) -> Jobs:
    """A job of a task for each errand."""

    def run(task: LandRange, errands: Sequence[Errand]) -> list[bytes]:
        return list(context.parallelize(errands, len(errands)).map(task).collect())

    return run
