"""What comes in: batches and promises on their way into the book."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from thalweg.engine.shared.ingest.normalise import Normalised
from thalweg.engine.shared.ingest.task_landing import Written
from thalweg.plan.catalog import StreamDef


@dataclass(frozen=True)
class Receipt:
    """What became of a batch."""

    accepted: int
    late: int
    rejected: int
    repeated: bool = False
    reason: str | None = None  # why the first rejected row was
    row: int | None = None  # its place in the batch, from 0


Positions = Sequence[int] | pl.Series


@dataclass
class Push:
    """A batch of one partition, on its way in."""

    stream: StreamDef
    partition: int
    batch: pl.DataFrame
    typed: Normalised
    batch_id: str | None = None
    positions: Positions | None = None
    resume: bytes | None = None
    promise: int | None = None
    adopted: bool = False
    receipt: Receipt | None = None


@dataclass(frozen=True)
class Promise:
    """No tuple of the partition below the instant will come."""

    stream: StreamDef
    partition: int
    instant: int


@dataclass(frozen=True)
class Finish:
    """No tuple of the stream will come any more."""

    stream: StreamDef


@dataclass(frozen=True)
class Declare:
    """Partitions exist: they hold the watermark back before they say anything."""

    stream: StreamDef
    partitions: Sequence[int]


@dataclass(frozen=True)
class Take:
    """What tasks have typed, judged and written of some partitions."""

    stream: StreamDef
    parts: Sequence[Written]


Arriving = Push | Promise | Finish | Declare | Take
