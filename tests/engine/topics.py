"""Topics of the tests' own broker, written and read with Spark."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from tests.engine.kafka_broker import Broker

from thalweg.engine.kafka import Address, Cluster


class Record(NamedTuple):
    partition: int
    value: bytes | None
    key: bytes | None = None


class Topic:
    def __init__(self, spark: SparkSession, broker: Broker, name: str, partitions: int) -> None:
        self.address = Address(broker.server, name)
        self._spark = spark
        self.cluster = Cluster(spark, self.address)
        self.cluster.create(partitions)

    @property
    def uri(self) -> str:
        return f"kafka:{self.address.servers}/{self.address.topic}"

    def send(self, *records: Record) -> None:
        """In order; to a partition in this order too."""
        rows = [(i, r.partition, r.value, r.key) for i, r in enumerate(records)]
        schema = "i int, partition int, value binary, key binary"
        frame = self._spark.createDataFrame(rows, schema).coalesce(1).sortWithinPartitions("i")
        writer = frame.drop("i").write.format("kafka").option("topic", self.address.topic)
        writer.option("kafka.bootstrap.servers", self.address.servers).save()

    def received(self) -> list[tuple[int, bytes, dict[str, str]]]:
        """(partition, value, headers) of all records, by partition and offset."""
        reader = self._spark.read.format("kafka").option("subscribe", self.address.topic)
        reader = reader.option("kafka.bootstrap.servers", self.address.servers)
        rows = reader.option("includeHeaders", "true").load().sort("partition", "offset")
        return [
            (r.partition, bytes(r.value), {h.key: bytes(h.value).decode() for h in r.headers or []})
            for r in rows.select("partition", F.col("value"), "headers").collect()
        ]
