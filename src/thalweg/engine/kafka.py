"""What source and sink ask a Kafka cluster directly, through the JVM that Spark runs in."""

from __future__ import annotations

import re
import socket
from contextlib import closing
from types import TracebackType
from typing import Any, NamedTuple

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from thalweg.engine.failures import Unavailable

TIMEOUT_MS = 20_000
CONNECT_S = 3.0
_ADDRESS = re.compile(r"(?:kafka:)?(?://)?(?P<servers>[^/\s]+:\d+)/(?P<topic>[A-Za-z0-9._-]+)")


class KafkaError(Unavailable):
    """Something that Kafka, or the way to it, does not give."""


class Address(NamedTuple):
    """`kafka:host:port[,host:port…]/topic`"""

    servers: str
    topic: str


def parse_address(text: str) -> Address:
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise KafkaError(f"{text!r} is not of the form kafka:HOST:PORT/TOPIC")
    return Address(found["servers"], found["topic"])


def demand_connector(spark: SparkSession | None) -> SparkSession:
    """Raises KafkaError where Spark does not have its connector."""
    if spark is None:
        raise KafkaError("Kafka is reached through Spark: run with a Spark master")
    if "kafka" not in (spark.sparkContext.getConf().get("spark.jars") or ""):
        raise KafkaError(
            "Spark's connector for Kafka is not there: fetch it with `make kafka`, "
            "or point THALWEG_JARS to a folder that has it in kafka-connector/"
        )
    return spark


class Cluster:
    """Asks about one topic."""

    def __init__(self, spark: SparkSession, address: Address, **settings: str) -> None:
        self._jvm: Any = spark._jvm  # the classes' own names start there
        self._gateway: Any = spark.sparkContext._gateway
        self._address = address
        self._settings = {
            "bootstrap.servers": address.servers,
            "default.api.timeout.ms": str(TIMEOUT_MS),
            "request.timeout.ms": str(TIMEOUT_MS // 2),
            **settings,
        }

    def partitions(self) -> list[int]:
        with closing(self._admin()) as admin:
            return self._partitions(admin)

    def end_offsets(self) -> dict[int, int]:
        """By partition, the offset that the next record will have."""
        latest = self._jvm.org.apache.kafka.clients.admin.OffsetSpec.latest()
        with closing(self._admin()) as admin:
            return self._offsets(admin, self._partitions(admin), latest)

    def _offsets(self, admin: Any, partitions: list[int], which: Any) -> dict[int, int]:
        partition = self._jvm.org.apache.kafka.common.TopicPartition
        asked = {partition(self._address.topic, number): which for number in partitions}
        try:
            found = _answer(admin.listOffsets(self._map(asked)).all())
        except KafkaError as error:
            raise KafkaError(self._explained(str(error))) from None
        return {tp.partition(): found[tp].offset() for tp in found}

    def check_producer(self) -> None:
        """Raises KafkaError where Kafka's own client does not take the settings."""
        kafka = self._jvm.org.apache.kafka
        as_bytes = kafka.common.serialization.ByteArraySerializer().getClass().getName()
        serializers = {"key.serializer": as_bytes, "value.serializer": as_bytes}
        try:
            kafka.clients.producer.ProducerConfig(self._map({**self._settings, **serializers}))
        except (Py4JError, TypeError) as error:
            raise KafkaError(f"Kafka's client refuses a setting: {reason_of(error)}") from None

    def create(self, partitions: int) -> None:
        """A new topic."""
        topics = self._jvm.java.util.ArrayList()
        new_topic = self._jvm.org.apache.kafka.clients.admin.NewTopic
        topics.add(new_topic(self._address.topic, partitions, 1))
        with closing(self._admin()) as admin:
            _answer(admin.createTopics(topics).all())

    def _admin(self) -> Any:
        if not any(_answers(server) for server in self._address.servers.split(",")):
            raise KafkaError(self._no_answer())  # at once: Kafka's client would try for long
        try:
            admin_client = self._jvm.org.apache.kafka.clients.admin.AdminClient
            return admin_client.create(self._map(self._settings))
        except (Py4JError, TypeError) as error:
            raise KafkaError(f"can't reach {self._address.servers}: {reason_of(error)}") from None

    def _partitions(self, admin: Any) -> list[int]:
        return sorted(p.partition() for p in self._described(admin).partitions())

    def _described(self, admin: Any) -> Any:
        topics = self._jvm.java.util.ArrayList()
        topics.add(self._address.topic)
        try:
            found = _answer(admin.describeTopics(topics).allTopicNames())
        except KafkaError as error:
            raise KafkaError(self._explained(str(error))) from None
        return found[self._address.topic]

    def _explained(self, reason: str) -> str:
        """What Kafka's own words mean to whoever gave the address."""
        servers, topic = self._address
        if "does not host this topic" in reason or "UnknownTopic" in reason:
            return f"{servers} has no topic {topic}: create it first"
        if "Timed out" in reason or "timed out" in reason:
            return self._no_answer()
        return f"{servers}/{topic}: {reason}"

    def _no_answer(self) -> str:
        servers = self._address.servers
        return f"no broker answers at {servers}: is it running, and is this its address?"

    def _map(self, items: dict[Any, Any]) -> Any:
        made = self._jvm.java.util.HashMap()
        for key, value in items.items():
            made.put(key, value)
        return made


class TopicState(NamedTuple):
    """Which topic it is (one that is created again has another id), and the offsets that it has:
    from the first to the one that the next record will have."""

    id: str
    first: dict[int, int]
    end: dict[int, int]


class TopicWatch(Cluster):
    """Asks again and again, over one connection."""

    def __enter__(self) -> TopicWatch:
        self._kept = self._admin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._kept.close()

    def state(self) -> TopicState:
        found = self._described(self._kept)
        partitions = [p.partition() for p in found.partitions()]
        spec = self._jvm.org.apache.kafka.clients.admin.OffsetSpec
        # The beginning first: what retention takes between the two looks only makes it older.
        first = self._offsets(self._kept, partitions, spec.earliest())
        end = self._offsets(self._kept, partitions, spec.latest())
        return TopicState(found.topicId().toString(), first, end)

    def has_grown(self, since: TopicState) -> bool:
        """Whether a partition has ended elsewhere since; cheaper than `state`."""
        latest = self._jvm.org.apache.kafka.clients.admin.OffsetSpec.latest()
        return self._offsets(self._kept, sorted(since.end), latest) != since.end


def _answer(future: Any) -> Any:
    try:
        return future.get()
    except Py4JJavaError as error:
        raise KafkaError(reason_of(error)) from None


def _answers(server: str) -> bool:
    host, _, port = server.strip().rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True


def reason_of(error: BaseException) -> str:
    java = getattr(error, "java_exception", None)
    return str(error if java is None else java.getMessage()).splitlines()[0]
