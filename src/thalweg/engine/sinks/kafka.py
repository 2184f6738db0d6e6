"""Kafka: a record for each change; its headers have the query and the row's id.

With each tick, the topic's end is committed. After a crash the sink looks at what lies behind that
end, and drops those rows of the repeated tick that are there already: exactly once from this
writer. Records that Spark itself sends twice (a task that is run again) keep their ids, so that
readers can tell.
"""

from __future__ import annotations

import json
from contextlib import suppress

import msgspec
import polars as pl
from py4j.protocol import Py4JError
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from thalweg.engine.kafka import (
    Address,
    Cluster,
    KafkaError,
    demand_connector,
    parse_address,
    reason_of,
)
from thalweg.engine.shared.frames import TS
from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.encode import json_lines

QUERY = "query"
RUN, INSTANT, ORDINAL = ID = ("run", "instant", "ordinal")  # headers: a row's id

RowId = tuple[int, int, int]


class KafkaProgress(msgspec.Struct, frozen=True):
    """The topic's end, by partition, when the last tick was committed."""

    ends: dict[int, int]


class KafkaSink:
    """Writes to one partition of the topic, so that readers get a query's changes in order."""

    def __init__(self, spark: SparkSession, address: Address, *, partition: int = 0) -> None:
        self._spark, self._address, self._partition = spark, address, partition
        self._cluster = Cluster(spark, address)
        self._there: set[RowId] = set()  # written, but never committed
        self._ends: dict[int, int] | None = None  # None after a write: to be asked for

    def open(self, committed: bytes | None) -> None:
        now = self._cluster.end_offsets()
        self._ends, self._there = now, set()
        if committed is not None:
            ends = msgspec.json.decode(committed, type=KafkaProgress).ends
            self._there = self._found_between(ends, now)

    def write(self, emission: Emission) -> None:
        if not emission.rows.height:
            return
        rows = pl.DataFrame(
            {
                "value": json_lines(emission).str.strip_suffix("\n"),
                INSTANT: emission.rows[TS],
                ORDINAL: pl.Series(emission.ordinals(), dtype=pl.Int64),
            }
        )
        known = [(instant, ordinal) for run, instant, ordinal in self._there if run == emission.run]
        if known:
            there = pl.DataFrame(known, schema=[INSTANT, ORDINAL], orient="row")
            rows = rows.join(there, on=[INSTANT, ORDINAL], how="anti", maintain_order="left")
        if rows.height:
            self._send(rows, emission)
            self._ends = None

    def progress(self) -> bytes:
        if self._ends is None:
            self._ends = self._cluster.end_offsets()
        return msgspec.json.encode(KafkaProgress(self._ends))

    def close(self) -> None:
        pass

    def _send(self, rows: pl.DataFrame, emission: Emission) -> None:
        table = rows.to_arrow()
        headers = F.array(
            _header(QUERY, F.lit(emission.query)),
            _header(RUN, F.lit(str(emission.run))),
            _header(INSTANT, F.col(INSTANT).cast("string")),
            _header(ORDINAL, F.col(ORDINAL).cast("string")),
        )
        records = (
            self._spark.createDataFrame(table)
            .coalesce(1)
            .sortWithinPartitions(INSTANT, ORDINAL)
            .select(
                F.col("value").cast("binary"),
                F.lit(self._partition).cast("int").alias("partition"),
                headers.alias("headers"),
            )
        )
        writer = records.write.format("kafka").option("topic", self._address.topic)
        try:
            writer.option("kafka.bootstrap.servers", self._address.servers).save()
        except Py4JError as error:
            raise KafkaError(reason_of(error)) from None

    def _found_between(self, starts: dict[int, int], ends: dict[int, int]) -> set[RowId]:
        """Ids of the records in these ranges of offsets, whoever wrote them."""
        ranges = {p: (starts.get(p, 0), end) for p, end in ends.items()}
        if all(start >= end for start, end in ranges.values()):
            return set()
        reader = self._spark.read.format("kafka").options(
            **{
                "kafka.bootstrap.servers": self._address.servers,
                "subscribe": self._address.topic,
                "includeHeaders": "true",
                "startingOffsets": self._offsets({p: s for p, (s, _) in ranges.items()}),
                "endingOffsets": self._offsets({p: e for p, (_, e) in ranges.items()}),
            }
        )
        found = set()
        for (headers,) in reader.load().select("headers").collect():
            by_name = {h.key: bytes(h.value).decode(errors="replace") for h in headers or []}
            with suppress(KeyError, ValueError):  # somebody else's record
                run, instant, ordinal = (int(by_name[name]) for name in ID)
                found.add((run, instant, ordinal))
        return found

    def _offsets(self, offsets: dict[int, int]) -> str:
        return json.dumps({self._address.topic: {str(p): o for p, o in offsets.items()}})


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))


def open_kafka_sink(target: str, spark: SparkSession | None) -> KafkaSink:
    try:
        return KafkaSink(demand_connector(spark), parse_address(target))
    except KafkaError as error:
        raise SinkError(str(error)) from None
