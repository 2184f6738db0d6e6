"""Topics of the tests' own broker, written and read with Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from tests.engine.kafka_broker import Broker

from thalweg.engine.kafka import Address, Cluster, KafkaError


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

    def remove_before(self, partition: int, offset: int) -> None:
        """As retention does."""
        kafka = self._spark._jvm.org.apache.kafka
        records = self._records_before(offset)
        place = kafka.common.TopicPartition(self.address.topic, partition)
        self._admin(lambda admin: admin.deleteRecords(self.cluster._map({place: records})))

    def _records_before(self, offset: int) -> Any:
        """`RecordsToDelete.beforeOffset`, which Py4J does not see as static in all JVMs: there is
        a getter of the same name, and it looks at one of the two."""
        lang, array = self._spark._jvm.java.lang, self._spark.sparkContext._gateway.new_array
        loader = lang.Thread.currentThread().getContextClassLoader()
        kind = lang.Class.forName("org.apache.kafka.clients.admin.RecordsToDelete", True, loader)
        types, values = array(lang.Class, 1), array(lang.Object, 1)
        types[0], values[0] = lang.Long.TYPE, offset
        return kind.getMethod("beforeOffset", types).invoke(None, values)

    def delete(self) -> None:
        topics = self._spark._jvm.java.util.ArrayList()
        topics.add(self.address.topic)
        self._admin(lambda admin: admin.deleteTopics(topics))
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                self.cluster.partitions()
            except KafkaError:
                return
            time.sleep(0.1)
        raise TimeoutError(f"{self.address.topic} is still there")

    def grow(self, partitions: int) -> None:
        admin_package = self._spark._jvm.org.apache.kafka.clients.admin
        new = admin_package.NewPartitions.increaseTo(partitions)
        asked = self.cluster._map({self.address.topic: new})
        self._admin(lambda admin: admin.createPartitions(asked))

    def _admin(self, ask: Callable[[Any], Any]) -> None:
        with closing(self.cluster._admin()) as admin:
            ask(admin).all().get()

    def received(self) -> list[tuple[int, bytes, dict[str, str]]]:
        """(partition, value, headers) of all records, by partition and offset."""
        reader = self._spark.read.format("kafka").option("subscribe", self.address.topic)
        reader = reader.option("kafka.bootstrap.servers", self.address.servers)
        rows = reader.option("includeHeaders", "true").load().sort("partition", "offset")
        return [
            (r.partition, bytes(r.value), {h.key: bytes(h.value).decode() for h in r.headers or []})
            for r in rows.select("partition", F.col("value"), "headers").collect()
        ]
