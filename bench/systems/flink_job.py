"""Runs in the environment that has PyFlink: a job's queries as one STATEMENT SET.

Prints one line of JSON: the seconds until the job had been planned and submitted, and the seconds
and processor seconds from then on until it was done.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

from bench.measure import CpuWatch, Stopwatch

COLUMNS = {
    "O": "ts BIGINT, itemID BIGINT, sellerID BIGINT, price DOUBLE",
    "C": "ts BIGINT, itemID BIGINT, buyerID BIGINT",
}
SETTINGS = {
    "execution.checkpointing.interval": "10 s",
    "taskmanager.memory.network.min": "512m",  # one job with many operators has many channels
    "taskmanager.memory.network.max": "512m",
    "rest.address": "127.0.0.1",
    "rest.bind-port": "0",
}


def main(file: str) -> None:
    job = json.loads(Path(file).read_text())
    settings = {
        **SETTINGS,
        "parallelism.default": str(job["cores"]),
        "execution.checkpointing.dir": Path(job["checkpoints"]).as_uri(),
    }
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in settings.items():
        tables.get_config().set(name, value)
    watch = Stopwatch()
    for stream, columns in COLUMNS.items():
        tables.execute_sql(
            f"CREATE TABLE {stream} ({columns}, rt AS TO_TIMESTAMP_LTZ(ts, 3), "
            "WATERMARK FOR rt AS rt - INTERVAL '0.001' SECOND) "
            + _files(Path(job["data"]) / stream)
        )
    statements = tables.create_statement_set()
    for query in job["queries"]:
        columns = ", ".join(f"{name} {type_}" for name, type_ in query["columns"].items())
        sink = f"sink_{query['name']}"
        tables.execute_sql(f"CREATE TABLE {sink} ({columns}) {_files(Path(query['out']))}")
        statements.add_insert_sql(f"INSERT INTO {sink} {query['select']}")
    result = statements.execute()
    start_s = watch.seconds
    cpu, watch = CpuWatch(), Stopwatch()
    result.wait()
    measured = {"start_s": start_s, "seconds": watch.seconds, "cpu_s": cpu.seconds}
    sys.stdout.write(json.dumps(measured) + "\n")


def _files(folder: Path) -> str:
    return f"WITH ('connector' = 'filesystem', 'path' = '{folder.as_uri()}', 'format' = 'csv')"


if __name__ == "__main__":
    main(sys.argv[1])
