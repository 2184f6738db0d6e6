"""What others take from an event to its row: Flink SQL, and Spark's Real-Time Mode.

Neither does quite what a site does. Flink's rows are in files that a checkpoint has committed, over
events that nothing has made durable. Real-Time Mode has no join and no files: a filter from one
Kafka topic to another, whose rows may come twice.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F  # noqa: N812
from tests.engine.kafka_broker import Broker, missing
from tests.engine.topics import Topic

from bench.measure import percentile
from bench.systems import flink
from bench.systems.elsewhere import run_job
from bench.systems.outcome import Unable
from bench.warm import warmed
from thalweg.engine.session import spark_session

_WARM = 5
_LONGEST_S = 60.0
_STRINGS = "org.apache.kafka.common.serialization.String"


def flink_row(
    repeats: int, gap_s: float, checkpoint_ms: int, folder: Path, limit_s: float = 300.0
) -> dict[str, Any]:
    """Raises Unable where there is no Flink."""
    folder.mkdir(parents=True)
    job = {
        "repeats": repeats,
        "gap_s": gap_s,
        "checkpoint_ms": checkpoint_ms,
        "folder": str(folder.resolve()),
    }
    told = run_job("Flink", flink.INTERPRETER, job, folder, limit_s, module="flink_latency_job")
    way = f"Flink SQL, a checkpoint each {checkpoint_ms} ms"
    return {"what": "event to row", "way": way, "queries": 1, **told}


def real_time_row(repeats: int, gap_s: float, folder: Path) -> dict[str, Any]:
    """Raises Unable where there can be no broker."""
    if (why := missing()) is not None:
        raise Unable(why)
    folder.mkdir(parents=True)
    broker = Broker(folder / "broker")
    try:
        broker.wait()
        with warmed(spark_session("local[2]")) as spark:
            took = _through_topics(spark, broker, repeats, gap_s, folder)
    finally:
        broker.stop()
    return {
        "what": "event to row, a filter",
        "way": "Spark's Real-Time Mode, from Kafka to Kafka",
        "queries": 1,
        "median ms": percentile(took, 50),
        "p95 ms": percentile(took, 95),
    }


def _through_topics(
    spark: Any, broker: Broker, repeats: int, gap_s: float, folder: Path
) -> list[float]:
    for name in ("events", "rows"):
        Topic(spark, broker, name, 1)
    events = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.server)
        .option("subscribe", "events")
        .load()
    )
    event = F.from_json(F.col("value").cast("string"), "item BIGINT, price DOUBLE")
    rows = events.select(event.alias("e")).where("e.price >= 100")
    query = (
        rows.select(F.to_json("e").alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.server)
        .option("topic", "rows")
        .option("checkpointLocation", str(folder / "checkpoints"))
        .outputMode("update")
        .trigger(realTime="5 minutes")
        .start()
    )
    try:
        return _followed(spark._jvm, broker.server, repeats, gap_s)
    finally:
        query.stop()


def _followed(jvm: Any, server: str, repeats: int, gap_s: float) -> list[float]:
    """Milliseconds of each event, by the JVM's own client: a call of it is a millisecond or two."""
    settings = jvm.java.util.Properties()
    for name, value in {
        "bootstrap.servers": server,
        "linger.ms": "0",
        "group.id": "bench",
        "auto.offset.reset": "earliest",
        **{f"{of}.serializer": f"{_STRINGS}Serializer" for of in ("key", "value")},
        **{f"{of}.deserializer": f"{_STRINGS}Deserializer" for of in ("key", "value")},
    }.items():
        settings.put(name, value)
    clients = jvm.org.apache.kafka.clients
    producer = clients.producer.KafkaProducer(settings)
    consumer = clients.consumer.KafkaConsumer(settings)
    topics = jvm.java.util.ArrayList()
    topics.add("rows")
    consumer.subscribe(topics)
    took = []
    try:
        for number in range(-_WARM, repeats):
            time.sleep(gap_s)
            began = time.perf_counter()
            text = json.dumps({"item": number, "price": 200.0})
            producer.send(clients.producer.ProducerRecord("events", text))
            producer.flush()
            _await(consumer, jvm.java.time.Duration.ofSeconds(1), number)
            took.append(1e3 * (time.perf_counter() - began))
    finally:
        producer.close()
        consumer.close()
    return took[_WARM:]


def _await(consumer: Any, wait: Any, number: int) -> None:
    until = time.perf_counter() + _LONGEST_S
    while time.perf_counter() < until:
        found = consumer.poll(wait).iterator()
        while found.hasNext():
            if json.loads(found.next().value())["item"] == number:
                return
    raise TimeoutError(f"no row in {_LONGEST_S:.0f} s")
