"""Kafka as a source, through Spark's own connector: `kafka:host:9092/topic`.

A record's value is a JSON object. A topic's partitions are the stream's partitions, each in the
order of its offsets. With every batch the book keeps the offset behind it, so what Spark repeats
after a crash is known.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from thalweg.engine.kafka import Address, Cluster, KafkaError, demand_connector, parse_address
from thalweg.engine.sources.errors import SourceError, suggestion
from thalweg.engine.sources.feed import Feed
from thalweg.engine.sources.files.json_lines import JsonLines
from thalweg.engine.sources.files.lines import Block
from thalweg.engine.sources.files.watch import raise_if_failed
from thalweg.engine.sources.options import Options
from thalweg.engine.sources.pieces import pieces_of
from thalweg.engine.sources.rows import columns_of
from thalweg.engine.sources.staging import FILE, START
from thalweg.plan.catalog import StreamDef

_LOOK_S = 0.1
_OFFSETS_PER_BATCH = 500_000
_NOTHING = b"null"  # in place of a value that is missing or blank: a line that is no object


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
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._session = spark.newSession()
        self._session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", rows_per_batch)
        self._address, self._live, self._rows = address, live, rows_per_batch
        self._key, self._starting = key, starting
        self._settings = dict(settings or {})
        self._lines = JsonLines(stream)

    def run(self, feed: Feed) -> None:
        plain = {name.removeprefix("kafka."): value for name, value in self._settings.items()}
        feed.declare(Cluster(self._session, self._address, **plain).partitions())

        def take(frame: DataFrame, batch: int) -> None:
            # Each partition is read by one task, so its records come in order.
            for piece in pieces_of(frame, feed.folder / "pieces", self._rows, int):
                self._deliver(feed, int(piece.file), piece.table())

        writer = self._frame().writeStream.foreachBatch(take)
        writer = writer.option("checkpointLocation", str(feed.folder / "checkpoint"))
        trigger = {"processingTime": "0 seconds"} if self._live else {"availableNow": True}
        query = writer.trigger(**trigger).start()
        try:
            while not feed.wait(_LOOK_S) and query.isActive:
                raise_if_failed(query)
            raise_if_failed(query)
        finally:
            query.stop()
        if not self._live and not feed.stopped:
            feed.finish()

    def _frame(self) -> DataFrame:
        reader = self._session.readStream.format("kafka").options(
            **{
                "kafka.bootstrap.servers": self._address.servers,
                "subscribe": self._address.topic,
                "startingOffsets": self._starting,
                "maxOffsetsPerTrigger": str(_OFFSETS_PER_BATCH),
                **self._settings,
            }
        )
        return reader.load().select(
            "value",
            "offset",
            "key",
            F.col("partition").cast("string").alias(FILE),
            F.lit(0).cast("long").alias(START),
        )

    def _deliver(self, feed: Feed, partition: int, records: pl.DataFrame) -> None:
        known = int(feed.resume_point(partition) or b"0")  # offsets below it have landed
        fresh = records.filter(pl.col("offset") >= known)
        if not fresh.height:
            return
        rows = self._lines.frame(self._block(partition, fresh))
        if self._key is not None:
            keys = [None if k is None else k.decode(errors="replace") for k in fresh["key"]]
            rows = rows.with_columns(pl.Series(self._key, keys, dtype=pl.String))
        behind = int(fresh["offset"][-1]) + 1
        feed.push(rows, partition=partition, resume=str(behind).encode())

    def _block(self, partition: int, records: pl.DataFrame) -> Block:
        """A line for each record: line ends between JSON's tokens mean nothing."""
        lines = (
            (value or b"").replace(b"\r", b" ").replace(b"\n", b" ") for value in records["value"]
        )
        text = b"".join((line if line.strip() else _NOTHING) + b"\n" for line in lines)
        name = f"topic {self._address.topic}, partition {partition}"
        return Block(name, 0, text, numbers=records["offset"].to_list(), unit="offset")


def open_kafka(
    stream: StreamDef, uri: str, spark: SparkSession | None, *, live: bool, rows_per_batch: int
) -> KafkaSource:
    """`key` names the column that the record's key goes to; `starting` is earliest or latest.

    Options whose names start with `kafka.` (in double quotes) go to Kafka's own client.
    """
    options = Options(stream)
    key = options.text("key")
    starting = options.choice("starting", "earliest", ("earliest", "latest"))
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
            settings=settings,
        )
    except KafkaError as error:
        raise SourceError(f"{stream.name}: {error}") from None
