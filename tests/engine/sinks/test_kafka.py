"""Against a real broker: a repeated tick adds only what is not there yet."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession
from tests.engine.kafka_broker import Broker
from tests.engine.sinks.emissions import numbers
from tests.engine.topics import Record, Topic

from thalweg.engine.shared.results import large
from thalweg.engine.shared.results.large import LargeEmission, Part
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.names import result_table
from thalweg.engine.shared.state.segments import BundleWriter
from thalweg.engine.shared.tick.executors import OnSpark
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.sinks.kafka import KafkaSink
from thalweg.engine.sinks.kafka_records import CHANGES, UPSERTS, records
from thalweg.engine.sinks.registry import open_sink

pytestmark = pytest.mark.kafka


def ids(topic: Topic) -> list[tuple[int, int, int]]:
    """(run, instant, ordinal) of the query q; its rows have the instant as their value, too."""
    found = []
    for _, value, h in topic.received():
        if h["query"] == "q":
            found.append((int(h["run"]), int(h["instant"]), int(h["ordinal"])))
            assert json.loads(value)["row"]["n"] == found[-1][1]
    return found


def test_a_tick_that_a_crash_cut_short_is_completed_not_repeated(
    spark: SparkSession, broker: Broker, tmp_path
):
    topic = Topic(spark, broker, "results", 2)
    sink = open_sink(topic.uri, tmp_path, spark)
    assert isinstance(sink, KafkaSink)
    sink.open(None)
    sink.write(numbers(1, 10, 11, 12))
    committed = sink.progress()
    sink.write(numbers(2, 20, 20))  # the first rows of a tick, and no commit
    sink.write(replace(numbers(2, 90, 91, query="another"), run=2))

    again = KafkaSink(spark, topic.address)
    again.open(committed)
    again.write(numbers(2, 20, 20, 20, 23))
    again.progress()
    again.write(numbers(3, 30))
    assert ids(topic) == [
        (1, 10, 0),
        (1, 11, 0),
        (1, 12, 0),
        (1, 20, 0),
        (1, 20, 1),
        (1, 20, 2),
        (1, 23, 0),
        (1, 30, 0),
    ]
    assert {partition for partition, _, _ in topic.received()} == {0}


def test_the_rows_of_a_query_that_was_created_anew_are_others(spark, broker):
    topic = Topic(spark, broker, "anew", 1)
    sink = KafkaSink(spark, topic.address)
    sink.open(None)
    committed = sink.progress()
    sink.write(numbers(1, 10))  # and no commit
    again = KafkaSink(spark, topic.address)
    again.open(committed)
    again.write(replace(numbers(1, 10), run=2))
    assert ids(topic) == [(1, 10, 0), (2, 10, 0)]


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


def test_upserts_go_to_the_partition_of_their_key(spark, broker, tmp_path):
    topic = Topic(spark, broker, "upserts", 3)
    options = {"key": "n", "form": "upserts", "kafka.acks": "all"}
    sink = open_sink(topic.uri, tmp_path, spark, options)
    sink.open(None)
    for tick in range(1, 4):
        sink.write(numbers(tick, *range(10 * tick, 10 * tick + 8)))
    sink.progress()
    received = topic.received()
    assert len(received) == 24
    assert len({partition for partition, _, _ in received}) > 1


def test_a_missing_topic_and_a_missing_broker_are_told(spark, broker, tmp_path):
    topic = Topic(spark, broker, "there", 1)
    servers = topic.address.servers
    with pytest.raises(SinkError, match="has no topic nowhere: create it first"):
        open_sink(f"kafka:{servers}/nowhere", tmp_path, spark).open(None)
    # Long patience would be Kafka's own: nobody who submits a sink should have to wait for it.
    patient = {"kafka.default.api.timeout.ms": "3600000"}
    with pytest.raises(SinkError, match=r"no broker answers at 127\.0\.0\.1:1"):
        open_sink("kafka:127.0.0.1:1/t", tmp_path, spark, patient).open(None)


def test_settings_that_kafkas_client_refuses_are_told(spark, broker, tmp_path):
    topic = Topic(spark, broker, "settings", 1)
    with pytest.raises(SinkError, match=r"refuses a setting: Invalid value maybe .* acks"):
        open_sink(topic.uri, tmp_path, spark, {"kafka.acks": "maybe"}).open(None)
    open_sink(topic.uri, tmp_path, spark, {"kafka.acks": "all"}).open(None)


def test_options_that_exclude_each_other_are_refused(tmp_path):
    with pytest.raises(SinkError, match="upserts need a key"):
        open_sink("kafka:h:9092/t", tmp_path, None, {"form": "upserts"})
    with pytest.raises(SinkError, match="option form is changes or upserts"):
        open_sink("kafka:h:9092/t", tmp_path, None, {"form": "upsert"})


# --- large results, made by tasks


def drawn(folder: Path, rows: int) -> LargeEmission:
    """So many rows of two tasks, with several to an instant, in parts of about 50."""
    files = Folder(str(folder), durable=False)
    writer = BundleWriter(files / "results", "0000000002-0-0-x.arrow")
    for task in range(2):
        values = list(range(task, rows, 2))
        frame = pl.DataFrame(
            {
                "_ts": [v // 3 for v in values],
                "_op": pl.Series([1] * len(values), dtype=pl.Int8),
                "c0": values,
                "c1": [v % 7 for v in values],
            }
        )
        writer.add(result_table("q"), frame, 0, 1_000)
    whole = Part("q", 1, ("n", "k"), files, tuple(writer.close()), 0, 1_000)
    return LargeEmission(whole, lambda do, items: [do(i) for i in items], rows)


def values(topic: Topic) -> list[int]:
    return [json.loads(value)["row"]["n"] for _, value, _ in topic.received()]


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(large, "A_PART", 50)


def test_a_large_result_is_sent_by_tasks_in_order(spark, broker, tmp_path, small_parts):
    topic = Topic(spark, broker, "large", 2)
    sink = KafkaSink(spark, topic.address)
    sink.open(None)
    sink.write(drawn(tmp_path, 400))
    sink.progress()
    sink.write(numbers(3, 9_000))
    assert values(topic) == [*range(400), 9_000]
    assert {partition for partition, _, _ in topic.received()} == {0}
    by_hand = records(drawn(tmp_path / "again", 400), (), CHANGES)
    got = [(v.decode(), int(h["instant"]), int(h["ordinal"])) for _, v, h in topic.received()]
    assert got[:400] == by_hand.select("value", "instant", "ordinal").rows()
    assert not list((tmp_path / "encoded").iterdir())


@pytest.mark.parametrize("keys", [(), ("k",)], ids=["in the query's order", "in each key's"])
def test_a_large_result_that_a_crash_cut_short_is_completed(
    spark, broker, tmp_path, small_parts, keys
):
    topic = Topic(spark, broker, f"cut-short-{len(keys)}", 3)
    sink = KafkaSink(spark, topic.address, keys=keys)
    sink.open(None)
    committed = sink.progress()
    sink.write(drawn(tmp_path / "a", 130))  # what of the tick was sent, and no commit
    again = KafkaSink(spark, topic.address, keys=keys)
    again.open(committed)
    again.write(drawn(tmp_path / "b", 400))
    last = again.progress()
    third = KafkaSink(spark, topic.address, keys=keys)
    third.open(committed)  # all was sent, and no commit
    third.write(drawn(tmp_path / "c", 400))
    assert third.progress() == last
    found = values(topic)
    assert sorted(found) == list(range(400))
    for key in range(7):
        of_key = [n for n in found if n % 7 == key]
        assert of_key == sorted(of_key)
    if keys:
        assert len({partition for partition, _, _ in topic.received()}) > 1


def test_what_a_task_refuses_is_told_in_a_line(spark, broker, tmp_path, small_parts):
    topic = Topic(spark, broker, "refused", 1)
    sink = KafkaSink(spark, topic.address, keys=("k",), form=UPSERTS)
    sink.open(None)
    files = Folder(str(tmp_path), durable=False)
    writer = BundleWriter(files / "results", "0000000002-0-0-x.arrow")
    twice = pl.DataFrame(
        {"_ts": [5, 5], "_op": pl.Series([1, 1], dtype=pl.Int8), "c0": [1, 2], "c1": [3, 3]}
    )
    writer.add(result_table("q"), twice, 0, 10)
    whole = Part("q", 1, ("n", "k"), files, tuple(writer.close()), 0, 10)
    emission = LargeEmission(whole, OnSpark(spark.sparkContext).each, 2)
    with pytest.raises(SinkError, match=r"^q has two rows of key") as refused:
        sink.write(emission)
    assert "\n" not in str(refused.value)
