"""Runs in the environment that has PyFlink: from an event to its row in a committed file.

The join of `bench.submit`, over two sockets: the least that can stand between an event and Flink.
The files are exactly-once: a row is there once the checkpoint that commits its file is done. Prints
one line of JSON, milliseconds.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path

from pyflink.common import Configuration
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.table import StreamTableEnvironment

from bench.measure import percentile

COLUMNS = {"O": "price", "C": "buyer"}
JOIN = (
    "INSERT INTO rows_out SELECT O.item, C.buyer FROM O, C WHERE O.item = C.item "
    "AND O.rt BETWEEN C.rt - INTERVAL '30' SECOND AND C.rt + INTERVAL '30' SECOND"
)
SETTINGS = {
    "execution.checkpointing.min-pause": "0 ms",
    "execution.buffer-timeout.interval": "1 ms",
    "parallelism.default": "1",
    "rest.address": "127.0.0.1",
    "rest.bind-port": "0",
}
_WARM = 5
_LONGEST_S = 60.0


def main(file: str) -> None:
    job = json.loads(Path(file).read_text())
    folder = Path(job["folder"])
    out = folder / "out"
    settings = {
        **SETTINGS,
        "execution.checkpointing.interval": f"{job['checkpoint_ms']} ms",
        "execution.checkpointing.dir": (folder / "checkpoints").as_uri(),
    }
    configuration = Configuration()
    for name, value in settings.items():
        configuration.set_string(name, value)
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    tables = StreamTableEnvironment.create(environment)
    doors = {name: _source(environment, tables, name) for name in COLUMNS}
    tables.execute_sql(
        "CREATE TABLE rows_out (item BIGINT, buyer BIGINT) WITH "
        f"('connector' = 'filesystem', 'path' = '{out.as_uri()}', 'format' = 'csv')"
    )
    running = tables.execute_sql(JOIN)
    links = [door.accept()[0] for door in doors.values()]
    for link in links:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    seen: set[str] = set()
    took = []
    for number in range(-_WARM, job["repeats"]):
        time.sleep(job["gap_s"])
        began = time.perf_counter()
        for link in links:
            link.sendall(f"{number},1\n".encode())
        _await(out, seen, f"{number},1\n")
        took.append(1e3 * (time.perf_counter() - began))
    measured = took[_WARM:]
    told = {"median ms": percentile(measured, 50), "p95 ms": percentile(measured, 95)}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    running.get_job_client().cancel()


def _source(
    environment: StreamExecutionEnvironment, tables: StreamTableEnvironment, name: str
) -> socket.socket:
    """A view over the lines that come in at a port of ours."""
    door = socket.create_server(("127.0.0.1", 0))
    lines = environment._j_stream_execution_environment.socketTextStream(*door.getsockname())
    tables.create_temporary_view(f"{name}_lines", tables.from_data_stream(DataStream(lines)))
    tables.execute_sql(
        f"CREATE TEMPORARY VIEW {name} AS SELECT "
        "CAST(SPLIT_INDEX(f0, ',', 0) AS BIGINT) AS item, "
        f"CAST(SPLIT_INDEX(f0, ',', 1) AS BIGINT) AS {COLUMNS[name]}, PROCTIME() AS rt "
        f"FROM {name}_lines"
    )
    return door


def _await(out: Path, seen: set[str], line: str) -> None:
    """Until a committed file has it: those that are not yet have names that begin with a dot."""
    until = time.perf_counter() + _LONGEST_S
    while time.perf_counter() < until:
        for file in out.glob("part-*"):
            if file.name not in seen:
                seen.add(file.name)
                if line in file.read_text():
                    return
        time.sleep(0.001)
    raise TimeoutError(f"no row in {_LONGEST_S:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1])
