"""The hand-written job of `thalweg bench many-queries` says what the engine says."""

from itertools import islice
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench import auctions
from bench.standing import draw
from bench.systems import expert, shared
from thalweg.engine.shared.tick.executors import InProcess


@pytest.mark.slow
def test_one_job_with_constants_in_tables_says_what_the_engine_says(
    spark: SparkSession, tmp_path: Path
):
    for number, batch in enumerate(islice(auctions.batches(600, 7, 4), 3)):
        auctions.write_parquet(batch, number, tmp_path / "parquet")
    queries = draw(12, 1.0, 0.3, (1, 2, 4), 7)
    files = auctions.parquet_files(tmp_path / "parquet")
    ours = shared.run(queries, files, InProcess(), tmp_path / "ours")
    theirs = expert.run(queries, tmp_path / "parquet", spark, tmp_path / "theirs", 500.0)
    assert theirs.said.equals(ours.said)
    assert theirs.said["rows"].sum() > 100
    assert len(theirs.ticks) >= 3
