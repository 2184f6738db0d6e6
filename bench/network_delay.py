"""From a push at a stream's home to its row at a reader, there and at another node."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import httpx
import polars as pl

from bench.nodes import NodeProcess, await_, network

SCHEMA = "CREATE STREAM S (k BIGINT) TIMESTAMP BY ts BIGINT"


def measure(folder: Path, events: int, tick_interval_ms: int) -> dict[str, list[float]]:
    """Seconds of every event: `here` at the home, `there` at another node; of the same pushes."""
    with network(folder, 2, tick_interval_ms) as (home, reader):
        home.cql(f"{SCHEMA}; CREATE QUERY here AS SELECT ISTREAM k FROM S [Now]")
        reader.cql("CREATE QUERY there AS SELECT ISTREAM k FROM S [Now]")
        followers = [Follower(home, "here"), Follower(reader, "there")]
        pushed: list[float] = []
        for number in range(events):
            pushed.append(time.perf_counter())
            home.push("S", pl.DataFrame({"ts": [number], "k": [number]}))
            home.heartbeat("S", number + 1)  # it is final now
            await_(lambda n=number: all(n in f.seen for f in followers), "a row", 0.001)  # type: ignore[misc]
        return {f.query: [f.seen[n] - pushed[n] for n in range(events)] for f in followers}


class Follower:
    """A user who follows a query's results as server-sent events."""

    def __init__(self, node: NodeProcess, query: str) -> None:
        self.query = query
        self.seen: dict[int, float] = {}  # by the row's key
        self.instants: dict[int, float] = {}  # when the first row of an instant came
        url = f"{node.url}/queries/{query}/results"
        threading.Thread(target=self._run, args=(url,), daemon=True).start()

    def _run(self, url: str) -> None:
        patient = httpx.Timeout(60, read=None)  # a query may be silent for long
        with (
            httpx.Client(trust_env=False, timeout=patient) as client,
            client.stream("GET", url) as got,
        ):
            for line in got.iter_lines():
                if line.startswith("data: ") and '"row"' in line:
                    told = json.loads(line.removeprefix("data: "))
                    now = time.perf_counter()
                    self.seen[told["row"]["k"]] = now
                    self.instants.setdefault(int(told["ts"]), now)
