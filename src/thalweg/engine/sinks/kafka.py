"""Kafka: a record for each change, or for each key that has changed; its headers have the query and
the row's id.

With each tick, the topic's end is committed. After a crash the sink looks at what lies behind that
end, and drops those rows of the repeated tick that are there already: exactly once from this
writer. Records that Spark itself sends twice (a task that is run again) keep their ids, so that
readers can tell.

Large results are sorted and encoded by tasks, part by part, and sent by others: by one, where the
topic's order is the query's, and by several where it is each key's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import cast

import msgspec
import polars as pl
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from thalweg.engine.kafka import (
    Address,
    Cluster,
    KafkaError,
    demand_connector,
    parse_address,
    reason_of,
)
from thalweg.engine.shared.results.emission import Emission
from thalweg.engine.shared.results.large import LargeEmission, Part
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.kafka_records import (
    CHANGES,
    FORMS,
    INSTANT,
    KEY,
    ORDINAL,
    RECORDS,
    UPSERTS,
    VALUE,
    ReadRecords,
    check_key,
    mark_record,
    records,
    refusal,
    write_records,
)
from thalweg.engine.sinks.options import SinkOptions
from thalweg.plan.catalog import QueryDef

QUERY, RUN = "query", "run"
ID = (RUN, INSTANT, ORDINAL)  # headers: a row's id

NOTHING = pl.DataFrame(schema=dict.fromkeys(ID, pl.Int64))


class KafkaProgress(msgspec.Struct, frozen=True):
    """The topic's end, by partition, when the last tick was committed."""

    ends: dict[int, int]


class KafkaSink:
    """Writes to one partition of the topic, so that readers get a query's changes in order; with a
    key, to the partition of the key, so that they get each key's in order."""

    def __init__(
        self,
        spark: SparkSession,
        address: Address,
        *,
        partition: int = 0,
        keys: tuple[str, ...] = (),
        form: str = CHANGES,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._spark, self._address, self._partition = spark, address, partition
        self._keys, self._form, self._settings = keys, form, dict(settings or {})
        plain = {name.removeprefix("kafka."): value for name, value in self._settings.items()}
        self._cluster = Cluster(spark, address, **plain)
        self._there = NOTHING  # ids of what is written, but was never committed
        self._ends: dict[int, int] | None = None  # None after a write: to be asked for

    def check_query(self, query: QueryDef) -> None:
        check_key(query, self._keys, self._form)

    def open(self, committed: bytes | None) -> None:
        try:
            if committed is None:
                self._cluster.check_producer()
            now = self._cluster.end_offsets()
        except KafkaError as error:
            raise SinkError(str(error)) from None
        if not self._keys and self._partition not in now:
            raise SinkError(
                f"{self._address.topic} has no partition {self._partition}: it has {sorted(now)}, "
                "to be chosen with OPTIONS (partition '…')"
            )
        self._ends, self._there = now, NOTHING
        if committed is not None:
            ends = msgspec.json.decode(committed, type=KafkaProgress).ends
            self._there = self._found_between(ends, now)

    def write(self, emission: Emission) -> None:
        there = self._there.filter(pl.col(RUN) == emission.run).drop(RUN)
        if isinstance(emission, LargeEmission):
            self._send_parts(emission, there)
            return
        rows = records(emission, self._keys, self._form)
        if emission.mark is not None:
            rows = pl.concat([rows, mark_record(emission)])
        rows = rows.join(there, on=[INSTANT, ORDINAL], how="anti", maintain_order="left")
        if rows.height:
            frame = self._spark.createDataFrame(rows.to_arrow()).coalesce(1)
            self._send(frame.sortWithinPartitions(INSTANT, ORDINAL), emission)

    def progress(self) -> bytes:
        if self._ends is None:
            self._ends = self._cluster.end_offsets()
        return msgspec.json.encode(KafkaProgress(self._ends))

    def close(self) -> None:
        pass

    def _send_parts(self, emission: LargeEmission, there: pl.DataFrame) -> None:
        def encode(part: Part) -> partial[None]:
            known = there.filter(pl.col(INSTANT).is_between(part.low, part.upto, closed="left"))
            return partial(write_records, keys=self._keys, form=self._form, there=known)

        try:
            with emission.left_there(encode) as (folder, made):
                names = [(place, name) for place, (_, name) in enumerate(made)]
                parts = self._spark.createDataFrame(names, "place int, name string")
                if not self._keys:
                    parts = parts.coalesce(1).sortWithinPartitions("place")
                rows = parts.select("name").mapInArrow(ReadRecords(folder), RECORDS)
                if self._keys:
                    rows = rows.repartition(KEY).sortWithinPartitions(INSTANT, ORDINAL)
                self._send(rows, emission)
        except (Py4JError, PySparkException) as error:
            raise refusal(error) or error from None

    def _send(self, rows: DataFrame, emission: Emission) -> None:
        """Each of the frame's partitions in its order."""
        headers = F.array(
            _header(QUERY, F.lit(emission.query)),
            _header(RUN, F.lit(str(emission.run))),
            _header(INSTANT, F.col(INSTANT).cast("string")),
            _header(ORDINAL, F.col(ORDINAL).cast("string")),
        )
        # A key finds its partition by itself; what has none goes to one.
        partition = F.lit(self._partition).cast("int")
        if self._keys:
            partition = F.when(F.col(KEY).isNull(), partition)
        sent = rows.select(
            F.col(KEY).cast("binary"),
            F.col(VALUE).cast("binary"),
            partition.alias("partition"),
            headers.alias("headers"),
        )
        writer = sent.write.format("kafka").options(**self._settings)
        writer = writer.option("topic", self._address.topic)
        self._ends = None
        try:
            writer.option("kafka.bootstrap.servers", self._address.servers).save()
        except Py4JError as error:
            raise KafkaError(reason_of(error)) from None

    def _found_between(self, starts: dict[int, int], ends: dict[int, int]) -> pl.DataFrame:
        """Ids of the records in these ranges of offsets, whoever wrote them."""
        ranges = {p: (starts.get(p, 0), end) for p, end in ends.items()}
        if all(start >= end for start, end in ranges.values()):
            return NOTHING
        reader = self._spark.read.format("kafka").options(
            **{
                **self._settings,
                "kafka.bootstrap.servers": self._address.servers,
                "subscribe": self._address.topic,
                "includeHeaders": "true",
                "startingOffsets": self._offsets({p: s for p, (s, _) in ranges.items()}),
                "endingOffsets": self._offsets({p: e for p, (_, e) in ranges.items()}),
            }
        )
        # Somebody else's records have no such headers, or not with numbers.
        ids = reader.load().select(*(_number(name) for name in ID))
        found = cast(pl.DataFrame, pl.from_arrow(ids.dropna().distinct().toArrow()))
        return found.select(pl.col(name).cast(pl.Int64) for name in ID)

    def _offsets(self, offsets: dict[int, int]) -> str:
        return json.dumps({self._address.topic: {str(p): o for p, o in offsets.items()}})


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))


def _number(name: str) -> Column:
    """What a header of this name says."""
    own = F.filter("headers", lambda h: h["key"] == F.lit(name))
    return F.try_element_at(own, F.lit(1))["value"].cast("string").try_cast("long").alias(name)


def open_kafka_sink(target: str, spark: SparkSession | None, given: Mapping[str, str]) -> KafkaSink:
    options = SinkOptions(f"kafka:{target}", given)
    keys = options.columns("key")
    form = options.choice("form", CHANGES, FORMS)
    partition = options.whole("partition", 0)
    settings = options.starting_with("kafka.")
    options.done()
    if form == UPSERTS and not keys:
        raise SinkError(f"kafka:{target}: upserts need a key, such as OPTIONS (key 'id')")
    if keys and "partition" in given:
        raise SinkError(f"kafka:{target}: a key finds its partition; leave one of the two out")
    try:
        return KafkaSink(
            demand_connector(spark),
            parse_address(target),
            partition=partition,
            keys=keys,
            form=form,
            settings=settings,
        )
    except KafkaError as error:
        raise SinkError(str(error)) from None
