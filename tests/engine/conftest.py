"""One Spark session for all engine tests: its start takes seconds, a job in it milliseconds."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from tests.engine.kafka_broker import Broker, missing

from thalweg.engine.kafka import KafkaError, demand_connector
from thalweg.engine.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session("local[2]", **{"spark.driver.memory": "2g"}) as session:
        yield session


@pytest.fixture(scope="session")
def broker(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One Kafka broker for all tests; each makes topics of its own."""
    why_not = missing()
    try:
        demand_connector(spark)
    except KafkaError as error:
        why_not = str(error)
    if why_not:
        pytest.skip(why_not)
    started = Broker(tmp_path_factory.mktemp("kafka"))
    started.wait()
    yield started
    started.stop()
