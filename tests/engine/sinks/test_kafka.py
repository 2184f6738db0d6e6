"""Against a real broker: a repeated tick adds only what is not there yet."""

import json

import pytest
from pyspark.sql import SparkSession
from tests.engine.kafka_broker import Broker
from tests.engine.sinks.emissions import numbers
from tests.engine.topics import Record, Topic

from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.kafka import KafkaSink
from thalweg.engine.sinks.registry import open_sink

pytestmark = pytest.mark.kafka


def ids(topic: Topic) -> list[tuple[str, int, int, int]]:
    return [
        (h["query"], int(h["tick"]), int(h["index"]), json.loads(value)["row"]["n"])
        for _, value, h in topic.received()
    ]


def test_a_tick_that_a_crash_cut_short_is_completed_not_repeated(
    spark: SparkSession, broker: Broker, tmp_path
):
    topic = Topic(spark, broker, "results", 2)
    sink = open_sink(topic.uri, tmp_path, spark)
    assert isinstance(sink, KafkaSink)
    sink.open(None)
    sink.write(numbers(1, 10, 11, 12))
    committed = sink.progress()
    sink.write(numbers(2, 20, 21))  # the first rows of tick 2, and no commit
    sink.write(numbers(2, 90, 91, query="another"))

    again = KafkaSink(spark, topic.address)
    again.open(committed)
    again.write(numbers(2, 20, 21, 22, 23))
    again.progress()
    again.write(numbers(3, 30))
    assert [i for i in ids(topic) if i[0] == "q"] == [
        ("q", 1, 0, 10),
        ("q", 1, 1, 11),
        ("q", 1, 2, 12),
        ("q", 2, 0, 20),
        ("q", 2, 1, 21),
        ("q", 2, 2, 22),
        ("q", 2, 3, 23),
        ("q", 3, 0, 30),
    ]
    assert {partition for partition, _, _ in topic.received()} == {0}


def test_what_others_write_to_the_topic_is_passed_over(spark, broker):
    topic = Topic(spark, broker, "shared-topic", 1)
    sink = KafkaSink(spark, topic.address)
    sink.open(None)
    committed = sink.progress()
    topic.send(Record(0, b"not ours"))
    again = KafkaSink(spark, topic.address)
    again.open(committed)
    again.write(numbers(1, 1))
    assert len(topic.received()) == 2


def test_without_spark_the_way_to_kafka_is_told(tmp_path):
    with pytest.raises(SinkError, match="Kafka is reached through Spark"):
        open_sink("kafka:h:9092/t", tmp_path)
