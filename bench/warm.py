"""A Spark session whose workers run and have loaded their libraries before any clock does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def warmed(spark: Any) -> Iterator[Any]:
    """Stopped at the end."""
    try:
        cores = spark.sparkContext.defaultParallelism
        numbers = spark.sparkContext.parallelize(range(2 * cores), 2 * cores)
        numbers.map(lambda i: __import__("thalweg.engine.shared.tick.task") and i).collect()
        spark.range(10).count()
        yield spark
    finally:
        spark.stop()
