"""Kafka as a source: `kafka:host:9092/topic`.

A record's value is a JSON object. A topic's partitions are the stream's partitions, each in the
order of its offsets. The driver chooses a range of offsets for each partition; Spark's connector
reads each range in a task of its own, where records are parsed, judged and written (`kafka_task`).
Files, newest instants and offsets are committed in one transaction of the book, which is the only
truth about what was read: what a crash interrupts is read again.

No record is passed over in silence: offsets that are gone before they were read, or a topic that
was created again, end the source with the reason, until it is allowed to go on (`on_loss 'skip'`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

import msgspec
import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from thalweg.engine.kafka import (
    Address,
    KafkaError,
    TopicState,
    TopicWatch,
    demand_connector,
    parse_address,
)
from thalweg.engine.shared.ingest.task_landing import Moved, Written
from thalweg.engine.sources.errors import SourceError, suggestion
from thalweg.engine.sources.feed import Feed
from thalweg.engine.sources.files.json_lines import JsonLines
from thalweg.engine.sources.kafka_offsets import (
    Loss,
    Position,
    Range,
    behind_losses,
    losses,
    next_ranges,
    position_of,
)
from thalweg.engine.sources.kafka_task import LandRecords, Records, read_report
from thalweg.engine.sources.options import Options
from thalweg.engine.sources.rows import columns_of
from thalweg.plan.catalog import StreamDef

_LOOK_S = 0.1
_LOOK_AT_ALL_S = 2.0  # for partitions that are new, and a topic that is another one
OFFSETS_PER_ROUND = 500_000
FAIL, SKIP = "fail", "skip"

Positions = dict[int, Position]


class KafkaSource:
    """Follows a topic; where it is not live, it ends with what is there at the start."""

    def __init__(
        self,
        spark: SparkSession,
        stream: StreamDef,
        address: Address,
        *,
        live: bool,
        rows_per_batch: int,
        key: str | None = None,
        starting: str = "earliest",
        on_loss: str = FAIL,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._session = spark.newSession()
        self._session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", rows_per_batch)
        self._address, self._live = address, live
        self._starting, self._on_loss = starting, on_loss
        self._settings = dict(settings or {})
        self._records = Records(stream, address.topic, key)
        self.offsets_per_round = OFFSETS_PER_ROUND

    def run(self, feed: Feed) -> None:
        plain = {name.removeprefix("kafka."): value for name, value in self._settings.items()}
        with TopicWatch(self._session, self._address, **plain) as watch:
            now = watch.state()
            positions = self._begin(feed, now)
            last = now.end
            while not feed.stopped:
                ranges = next_ranges(positions, last, self.offsets_per_round)
                if ranges:
                    feed.wait_for_room()
                    self._take(feed, ranges, now.id)
                    positions |= {p: Position(end, now.id) for p, (_, end) in ranges.items()}
                elif not self._live:
                    feed.finish()
                    return
                elif not self._wait_for_more(feed, watch, now):
                    return
                if self._live:
                    now = watch.state()
                    last = now.end
                    self._go_on(feed, positions, now)

    def _wait_for_more(self, feed: Feed, watch: TopicWatch, now: TopicState) -> bool:
        """Until there are records, or it is time to look at the whole topic; False at a stop."""
        until = time.monotonic() + _LOOK_AT_ALL_S
        while time.monotonic() < until:
            if feed.wait(_LOOK_S):
                return False
            if watch.has_grown(now):
                break
        return True

    # --- where to read

    def _begin(self, feed: Feed, now: TopicState) -> Positions:
        found = {p: feed.resume_point(p) for p in now.end}
        positions = {p: position_of(packed) for p, packed in found.items() if packed is not None}
        if not positions and self._starting == "latest":
            positions = {p: Position(end, now.id) for p, end in now.end.items()}
            self._note(feed, positions)  # else what comes before the first record is read is lost
        self._go_on(feed, positions, now)
        return positions

    def _go_on(self, feed: Feed, positions: Positions, now: TopicState) -> None:
        """Judge what has become of the topic, and get to know its new partitions."""
        found = losses(positions, now, self._address.topic)
        if found and self._on_loss == FAIL:
            raise KafkaError(
                f"{found[0].reason}. Nothing was skipped. To go on at offset "
                f"{found[0].goes_on_at}, create {self._records.stream.name} again with "
                "OPTIONS (on_loss 'skip')"
            )
        if found:
            behind = behind_losses(found, now)
            gone = {x.partition: positions.pop(x.partition) for x in found}
            positions |= behind
            self._note(feed, {**gone, **behind}, found)
        for loss in found:
            feed.warn(loss.reason)
        fresh = [p for p in sorted(now.end) if p not in positions]
        if fresh:
            positions |= {p: Position(now.first[p], now.id) for p in fresh}
            feed.declare(sorted(now.end))

    def _note(self, feed: Feed, positions: Positions, said: list[Loss] | None = None) -> None:
        """Durably: here it goes on, and this was lost."""
        if not feed.lands_in_tasks:
            return
        told = {x.partition: [json.dumps({"row": None, "reason": x.reason})] for x in said or ()}
        parts = []
        for partition, position in positions.items():
            place = feed.place(partition)
            parts.append(
                Written(
                    partition,
                    place,
                    newest=place.newest,
                    resume=position.packed(),
                    told=told.get(partition, []),
                )
            )
        feed.take(parts)

    # --- reading

    def _take(self, feed: Feed, ranges: Mapping[int, Range], topic: str) -> None:
        if not feed.lands_in_tasks:
            self._push(feed, ranges, topic)
            return
        while not feed.stopped:
            places = {p: feed.place(p) for p in ranges}
            task = LandRecords(self._records, feed.landing_folder, places)
            found = self._frame(ranges).mapInArrow(task, "report binary").collect()
            reports = {r.partition: r for r in (read_report(bytes(row[0])) for row in found)}
            parts = [
                msgspec.structs.replace(
                    # A range may have no record that is still there: compacted, or markers only.
                    reports.get(p, Written(p, places[p], newest=places[p].newest)),
                    resume=Position(end, topic).packed(),
                )
                for p, (_, end) in ranges.items()
            ]
            try:
                feed.take(parts)
                return
            except Moved:
                continue  # judged by what is no longer so: the same records again

    def _push(self, feed: Feed, ranges: Mapping[int, Range], topic: str) -> None:
        """For a landing that takes rows only."""
        lines = JsonLines(self._records.stream)
        rows = (
            self._frame(ranges)
            .toArrow()
            .sort_by([("partition", "ascending"), ("offset", "ascending")])
        )
        for partition, (_, end) in sorted(ranges.items()):
            table = rows.filter(pa.compute.equal(rows["partition"], partition))
            if table.num_rows:
                frame: pl.DataFrame = self._records.frame(lines, partition, table)
                feed.push(frame, partition=partition, resume=Position(end, topic).packed())

    def _frame(self, ranges: Mapping[int, Range]) -> DataFrame:
        topic = self._address.topic
        reader = self._session.read.format("kafka").options(
            **{
                "kafka.bootstrap.servers": self._address.servers,
                "failOnDataLoss": "true",
                **self._settings,
                "assign": json.dumps({topic: sorted(ranges)}),
                "startingOffsets": json.dumps({topic: {p: a for p, (a, _) in ranges.items()}}),
                "endingOffsets": json.dumps({topic: {p: b for p, (_, b) in ranges.items()}}),
            }
        )
        return reader.load().select("value", "offset", "key", "partition")


def open_kafka(
    stream: StreamDef, uri: str, spark: SparkSession | None, *, live: bool, rows_per_batch: int
) -> KafkaSource:
    """`key` names the column that the record's key goes to; `starting` is earliest or latest.

    Options whose names start with `kafka.` (in double quotes) go to Kafka's own client.
    """
    options = Options(stream)
    key = options.text("key")
    starting = options.choice("starting", "earliest", ("earliest", "latest"))
    on_loss = options.choice("on_loss", FAIL, (FAIL, SKIP))
    settings = options.starting_with("kafka.")
    options.done()
    columns = columns_of(stream)
    if key is not None and key.lower() not in {c.lower() for c in columns}:
        raise SourceError(f"{stream.name} has no column {key}{suggestion(key, columns)}")
    try:
        return KafkaSource(
            demand_connector(spark),
            stream,
            parse_address(uri),
            live=live,
            rows_per_batch=rows_per_batch,
            key=next((c for c in columns if key is not None and c.lower() == key.lower()), None),
            starting=starting,
            on_loss=on_loss,
            settings=settings,
        )
    except KafkaError as error:
        raise SourceError(f"{stream.name}: {error}") from None
