"""Kafka: a record for each change, its (query, tick, index) in the headers.

With each tick, the topic's end is committed. After a crash the sink looks at what lies behind that
end, and drops those rows of the repeated tick that are there already: exactly once from this
writer. Records that Spark itself sends twice (a task that is run again) keep their ids, so that
readers can tell.
"""

from __future__ import annotations

import json

import msgspec
import polars as pl
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from thalweg.engine.kafka import Address, Cluster, KafkaError, demand_connector, parse_address
from thalweg.engine.shared.results.results import Emission
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.encode import json_lines

QUERY, TICK, INDEX = "query", "tick", "index"  # headers


class KafkaProgress(msgspec.Struct, frozen=True):
    """The topic's end, by partition, when the last tick was committed."""

    ends: dict[int, int]


class KafkaSink:
    """Writes to one partition of the topic, so that readers get a query's changes in order."""

    def __init__(self, spark: SparkSession, address: Address, *, partition: int = 0) -> None:
        self._spark, self._address, self._partition = spark, address, partition
        self._cluster = Cluster(spark, address)
        self._there: set[tuple[str, int, int]] = set()  # written, but never committed
        self._ends: dict[int, int] | None = None  # None after a write: to be asked for

    def open(self, committed: bytes | None) -> None:
        now = self._cluster.end_offsets()
        self._ends, self._there = now, set()
        if committed is not None:
            ends = msgspec.json.decode(committed, type=KafkaProgress).ends
            self._there = self._found_between(ends, now)

    def write(self, emission: Emission) -> None:
        rows = pl.DataFrame({"value": json_lines(emission).str.strip_suffix("\n")})
        rows = rows.with_row_index(INDEX)
        known = [i for q, t, i in self._there if (q, t) == (emission.query, emission.tick)]
        if known:
            rows = rows.filter(~pl.col(INDEX).is_in(known))
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
        table = rows.with_columns(pl.col(INDEX).cast(pl.Int64)).to_arrow()
        headers = F.array(
            _header(QUERY, F.lit(emission.query)),
            _header(TICK, F.lit(str(emission.tick))),
            _header(INDEX, F.col(INDEX).cast("string")),
        )
        records = (
            self._spark.createDataFrame(table)
            .coalesce(1)
            .sortWithinPartitions(INDEX)
            .select(
                F.col("value").cast("binary"),
                F.lit(self._partition).cast("int").alias("partition"),
                headers.alias("headers"),
            )
        )
        writer = records.write.format("kafka").option("topic", self._address.topic)
        writer.option("kafka.bootstrap.servers", self._address.servers).save()

    def _found_between(
        self, starts: dict[int, int], ends: dict[int, int]
    ) -> set[tuple[str, int, int]]:
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
            if by_name.keys() >= {QUERY, TICK, INDEX}:
                found.add((by_name[QUERY], int(by_name[TICK]), int(by_name[INDEX])))
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
