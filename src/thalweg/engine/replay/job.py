"""What is to be replayed, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.engine.shared.tick.executors import Executor
from thalweg.plan.catalog import QueryDef, StreamDef
from thalweg.plan.nodes import StreamKind, ToStream, base_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINES = ("shared", "native", "reference")
TICK_ROWS = 250_000


class ReplayError(ValueError):
    """A replay that is not possible as asked, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Rejected:
    count: int
    first_reason: str


@dataclass(frozen=True, slots=True)
class Status:
    """How far a replay has come; late and rejected tuples by stream, where there are any."""

    rows_in: int = 0
    rows_out: int = 0
    ticks: int = 0
    late: Mapping[str, int] = field(default_factory=dict)
    rejected: Mapping[str, Rejected] = field(default_factory=dict)


def _nobody(_: Status) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Replay:
    """Without Spark, the shared engine runs in this process and reads files itself.

    With a data directory, a replay that was interrupted goes on where it was.
    """

    queries: Sequence[QueryDef]
    base_dir: Path  # where relative paths of sources start
    engine: str = "shared"
    as_stream: bool = False  # a query's own stream, or ISTREAM of its relation
    spark: SparkSession | None = None
    executor: Executor | None = None  # who runs ticks; by default Spark, where there is one
    tick_rows: int = TICK_ROWS
    data_dir: Path | None = None
    watch: Callable[[Status], None] = _nobody

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise ReplayError(f"there is no engine {self.engine}: there are {', '.join(ENGINES)}")
        if self.engine == "native" and self.spark is None:
            raise ReplayError("the native engine runs on Spark only")
        if self.engine != "shared" and self.data_dir is not None:
            raise ReplayError(f"the {self.engine} engine keeps nothing: it has no data directory")
        if self.tick_rows < 1:
            raise ReplayError("a tick takes one tuple or more")

    @property
    def streams(self) -> dict[str, StreamDef]:
        return {s.name: s for q in self.queries for s in base_streams(q.plan)}

    @property
    def plans(self) -> list[QueryDef]:
        """The queries as they are to be run."""
        return [_as_stream(q) for q in self.queries] if self.as_stream else list(self.queries)


def _as_stream(query: QueryDef) -> QueryDef:
    if query.plan.is_stream:
        return query
    plan = ToStream(StreamKind.ISTREAM, query.plan)
    return QueryDef(query.name, plan, query.text, query.from_now)
