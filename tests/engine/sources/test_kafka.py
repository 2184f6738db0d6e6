"""Against a real broker: every record once, in the order of its partition."""

import json
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engine.kafka_broker import Broker
from tests.engine.sources.landings import Landed, stream_of
from tests.engine.topics import Record, Topic

from thalweg.engine.kafka import KafkaError, parse_address
from thalweg.engine.sources import SourceError, open_source

pytestmark = pytest.mark.kafka


def numbered(first: int, last: int, partitions: int = 3) -> list[Record]:
    return [
        Record(n % partitions, json.dumps({"n": n, "ts": n}).encode(), f"key {n}".encode())
        for n in range(first, last)
    ]


def stream(topic: Topic, options: str = "", columns: str = "n BIGINT"):
    given = f" OPTIONS ({options})" if options else ""
    return stream_of(f"CREATE STREAM S ({columns}) TIMESTAMP BY ts FROM '{topic.uri}'{given}")


def by_partition(taken: Landed) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for (n,) in taken.rows:
        found.setdefault(n % 3, []).append(n)
    return found


def expected(count: int) -> dict[int, list[int]]:
    return {p: list(range(p, count, 3)) for p in range(3)}


def test_a_replay_reads_what_is_there_and_a_restart_what_has_come_since(
    tmp_path: Path, spark: SparkSession, broker: Broker
):
    topic = Topic(spark, broker, "recorded", 3)
    topic.send(*numbered(0, 500))
    s = stream(topic)
    source = open_source(s, spark, tmp_path, live=False, rows_per_batch=20)
    source.offsets_per_round = 150
    first = Landed(tmp_path / "data", s)
    failing, calls = first.feed.take, iter(range(1000))

    def take(parts):
        if next(calls) == 2:
            raise OSError("no space left")
        return failing(parts)

    first.feed.take = take
    with pytest.raises(Exception, match="no space left"):
        first.run(source)
    assert 0 < len(first.rows) < 500
    first.close()
    again = Landed(tmp_path / "data", s).run(source)
    assert by_partition(again) == expected(500)
    assert again.is_finished
    partitions = again.engine.store.all("SELECT partition, position FROM partitions ORDER BY 1")
    assert partitions == [(0, 167), (1, 167), (2, 166)]


def test_a_live_topic_is_followed_across_restarts(tmp_path, spark, broker):
    topic = Topic(spark, broker, "followed", 3)
    topic.send(*numbered(0, 30))
    s = stream(topic)
    for count in (60, 90):
        taken = Landed(tmp_path / "data", s)
        source = open_source(s, spark, tmp_path)
        thread = threading.Thread(target=source.run, args=(taken.feed,))
        thread.start()
        topic.send(*numbered(count - 30, count))
        until = time.monotonic() + 60
        while len(taken.rows) < count and time.monotonic() < until:
            time.sleep(0.1)
        taken.stop.set()
        thread.join(30)
        assert by_partition(taken) == expected(count)
        assert not taken.is_finished
        taken.engine.close()


def test_partitions_that_say_nothing_are_known_too(tmp_path, spark, broker):
    """The watermark waits for them."""
    topic = Topic(spark, broker, "silent", 2)
    topic.send(Record(0, b'{"n":1,"ts":5}'))
    s = stream(topic)
    taken = Landed(tmp_path, s).run(open_source(s, spark, tmp_path, live=False))
    assert taken.engine.store.all("SELECT partition FROM partitions ORDER BY 1") == [(0,), (1,)]


def test_poison_keys_and_values_over_several_lines(tmp_path, spark, broker):
    topic = Topic(spark, broker, "mixed", 1)
    topic.send(
        Record(0, b'{\n "n": 1,\r\n "ts": 1\n}', b"first"),
        Record(0, b"{broken", b"second"),
        Record(0, None, b"third"),
        Record(0, b" ", b"fourth"),
        Record(0, b'{"n":"x","ts":2}', b"fifth"),
        Record(0, b'{"n":2,"ts":2}', None),
    )
    s = stream(topic, "key 'WHO'", "n BIGINT, who VARCHAR")
    taken = Landed(tmp_path, s).run(open_source(s, spark, tmp_path, live=False))
    assert taken.rows == [(1, "first"), (2, None)]
    place = "topic mixed, partition 0, offset"
    assert [r["reason"][: len(place) + 2] for r in taken.rejects] == [
        f"{place} 1",
        f"{place} 2",
        f"{place} 3",
        "n: 'x' is not a valid BIGINT",
    ]


def test_a_topic_that_does_not_exist_is_an_error(tmp_path, spark, broker):
    s = stream_of(f"CREATE STREAM S (n BIGINT) TIMESTAMP BY ts FROM 'kafka:{broker.server}/none'")
    with pytest.raises(KafkaError, match="has no topic none: create it first"):
        Landed(tmp_path, s).run(open_source(s, spark, tmp_path, live=False))


def test_addresses():
    assert parse_address("kafka:h:9092/t") == ("h:9092", "t")
    assert parse_address("kafka://h:9092,g:9093/my.topic-1") == ("h:9092,g:9093", "my.topic-1")
    with pytest.raises(KafkaError, match="is not of the form"):
        parse_address("kafka:topic")


def test_without_spark_the_way_to_kafka_is_told(tmp_path: Path):
    s = stream_of("CREATE STREAM S (n BIGINT) TIMESTAMP BY ts FROM 'kafka:h:9092/t'")
    with pytest.raises(SourceError, match="S: Kafka is reached through Spark"):
        open_source(s, None, tmp_path)


def test_a_key_goes_to_a_column_that_exists(tmp_path: Path, spark: SparkSession):
    s = stream_of(
        "CREATE STREAM S (name VARCHAR) TIMESTAMP BY ts FROM 'kafka:h:9092/t' OPTIONS (key 'nam')"
    )
    with pytest.raises(SourceError, match=r"S has no column nam; did you mean name\?"):
        open_source(s, spark, tmp_path)
