"""One Spark session for all engine tests: its start takes seconds, a job in it milliseconds."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from thalweg.engine.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with spark_session("local[2]", **{"spark.driver.memory": "2g"}) as session:
        yield session
