"""A broker that restarts, records that go before they are read, a topic that is created again: no
record is lost without being told, and none is read twice."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.engine.kafka_broker import Broker
from tests.engine.sources.test_kafka import numbered
from tests.engine.topics import Topic

from thalweg.cql import compile_script
from thalweg.engine.shared.tick.executors import InProcess
from thalweg.engine.site import feeds
from thalweg.engine.site.settings import SiteSettings
from thalweg.engine.site.site import Site
from thalweg.engine.sources import open_source

pytestmark = pytest.mark.kafka


@pytest.fixture
def open_site(spark, tmp_path, monkeypatch) -> Iterator[Callable[..., Site]]:
    """A site that follows a topic; the same data directory each time."""
    monkeypatch.setattr(feeds, "_SOURCE_RETRIES_S", (0.2,))
    opened: list[Site] = []

    def open_(topic: Topic | None = None, options: str = "") -> Site:
        site = Site(
            tmp_path / "data",
            compile_script,
            InProcess(),
            open_source=lambda stream, folder: open_source(stream, spark, folder),
            settings=SiteSettings(durable=False, base_folder=tmp_path),
        )
        opened.append(site)
        if topic is not None:
            given = f" OPTIONS ({options})" if options else ""
            site.execute(
                f"CREATE STREAM S (n BIGINT) TIMESTAMP BY ts FROM '{topic.uri}'{given};"
                "CREATE QUERY q AS SELECT ISTREAM n FROM S [Now];"
            )
        return site

    yield open_
    for site in opened:
        site.close()


def came(site: Site) -> int:
    return site.engine.store.inputs.arrived().get("S", 0)


def until(condition: Callable[[], bool], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it has not come to pass"
        time.sleep(0.05)


def problems(site: Site) -> str:
    return " | ".join(site.health().problems)


def test_a_broker_that_is_killed_and_started_again(spark, broker: Broker, open_site):
    topic = Topic(spark, broker, "restarted", 3)
    topic.send(*numbered(0, 300))
    site = open_site(topic)
    until(lambda: came(site) == 300)
    broker.restart()
    topic.send(*numbered(300, 600))
    until(lambda: came(site) == 600)
    assert [r[0] for r in site.engine.store.all("SELECT position FROM partitions")] == [200] * 3
    assert not site.health().problems


def test_records_that_are_removed_before_they_are_read_stop_the_source(spark, broker, open_site):
    topic = Topic(spark, broker, "retained", 1)
    topic.send(*numbered(0, 20, 1))
    site = open_site(topic)
    until(lambda: came(site) == 20)
    site.close()
    topic.send(*numbered(20, 60, 1))
    topic.remove_before(0, 50)
    site = open_site()
    until(lambda: "offsets 20 to 49 were removed before they were read" in problems(site))
    assert "OPTIONS (on_loss 'skip')" in problems(site)
    time.sleep(0.5)
    assert came(site) == 20  # nothing was skipped


def test_who_allows_it_goes_on_and_finds_the_loss_among_the_rejects(spark, broker, open_site):
    topic = Topic(spark, broker, "skipped", 1)
    topic.send(*numbered(0, 20, 1))
    site = open_site(topic, "on_loss 'skip'")
    until(lambda: came(site) == 20)
    site.close()
    topic.send(*numbered(20, 60, 1))
    topic.remove_before(0, 50)
    for _ in range(2):  # told once, whatever is restarted
        site = open_site()
        until(lambda site=site: came(site) == 30)
        (rejects,) = Path(site.engine.folder).glob("rejects/*.jsonl")
        assert rejects.read_text().count("offsets 20 to 49 were removed") == 1
        site.close()


def test_a_topic_that_is_created_again_is_another_one(spark, broker, open_site):
    topic = Topic(spark, broker, "again", 1)
    topic.send(*numbered(0, 20, 1))
    site = open_site(topic)
    until(lambda: came(site) == 20)
    topic.delete()
    topic.cluster.create(1)
    topic.send(*numbered(100, 140, 1))  # as many as were read, and more
    until(lambda: "the topic was deleted and created again" in problems(site))
    assert came(site) == 20


def test_partitions_that_come_later_are_read_from_their_beginning(spark, broker, open_site):
    topic = Topic(spark, broker, "growing", 1)
    site = open_site(topic, "starting 'latest'")
    until(lambda: site.engine.landing.resume_point(site.stream("S")) is not None)
    topic.send(*numbered(0, 20, 1))
    until(lambda: came(site) == 20)
    topic.grow(3)
    topic.send(*numbered(0, 60, 3))
    until(lambda: came(site) == 80)
    assert site.engine.store.inputs.partitions_of("S") == [0, 1, 2]


def test_latest_means_when_it_was_first_opened(spark, broker, open_site):
    """Also if it was stopped before a record came."""
    topic = Topic(spark, broker, "latest", 1)
    topic.send(*numbered(0, 20, 1))
    site = open_site(topic, "starting 'latest'")
    until(lambda: site.engine.landing.resume_point(site.stream("S")) is not None)
    site.close()
    topic.send(*numbered(20, 30, 1))
    site = open_site()
    until(lambda: came(site) == 10)
