"""A fragment's node is killed and does not come back: how long until its reader says a new row.

Counted from when the reader knows: how long a silent node is waited for is a setting. Beside it, in
the same run, how long the windows take to be read again: a new query of the same text, from its
submission to its first row.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import polars as pl

from bench.network_delay import Follower
from bench.nodes import NodeProcess, await_, network
from thalweg.api.network.deployed import encode_placement
from thalweg.api.network.forwarding import HERE
from thalweg.cli.network.running import Wanted, meet, start, stop
from thalweg.cql import compile_script
from thalweg.engine.site import IN_PROCESS
from thalweg.plan.cutting import places
from thalweg.plan.nodes import Join
from thalweg.plan.travelling import encode_plan
from thalweg.runtime.data.fragments import cut_plan
from thalweg.runtime.network.measuring import Task

STREAMS = (
    "CREATE STREAM S (k BIGINT, v BIGINT) TIMESTAMP BY ts BIGINT; "
    "CREATE STREAM T (k BIGINT) TIMESTAMP BY ts BIGINT"
)
KEYS = 1000
_STEP_S = 0.02  # between two pushes
_GONE_AFTER_S = "0.5"


def measure(
    folder: Path, rounds: int, window: int, tick_interval_ms: int
) -> dict[str, list[float]]:
    """Seconds of each round: `found` from the kill, `first row` from then on, and `replay`."""
    more = ("--gone-after-s", _GONE_AFTER_S)
    found: dict[str, list[float]] = {"found": [], "first row": [], "replay": []}
    with network(folder, 2, tick_interval_ms, more) as (home, reader):
        # A fragment that begins with windows half empty can't be made anew until they are full.
        home.cql(STREAMS.replace("BIGINT;", f"BIGINT RETAIN {2 * window};"))
        clock = Clock(home, window)
        for number in range(rounds):
            name = f"g{number}"
            running = start(
                Wanted(name, master=IN_PROCESS),
                folder,
                [home.running.address],
                ["--tick-interval-ms", str(tick_interval_ms), *more],
            )
            try:
                meet([home.running, reader.running, running])
                _round(reader, clock, name, running.pid, found, window)
            finally:
                if running.pid in clock.killed:
                    os.waitpid(running.pid, 0)
                else:
                    stop([running])
    return found


def _round(
    reader: NodeProcess,
    clock: Clock,
    name: str,
    pid: int,
    found: dict[str, list[float]],
    window: int,
) -> None:
    text = _query(f"q{name}", window)
    _place(reader, text, name)
    follower = Follower(reader, f"q{name}")
    clock.until(lambda: bool(follower.seen))
    os.kill(pid, signal.SIGKILL)
    clock.killed.add(pid)
    killed = time.time()

    def taken() -> dict[str, Any] | None:
        told = reader.get("/network/successions", headers={HERE: "1"})
        return next((t for t in told if t["of"] == name and t["at"] is not None), None)

    clock.until(lambda: taken() is not None)
    told = taken()
    assert told is not None
    # What was under way when the node was killed is not new.
    clock.until(lambda: any(ts >= told["since"] for ts in list(follower.instants)))
    detected = told["detected"]
    offset = time.time() - time.perf_counter()
    first = min(at for ts, at in list(follower.instants.items()) if ts >= told["since"]) + offset
    found["found"].append(detected - killed)
    found["first row"].append(first - detected)
    began = time.perf_counter()
    reader.cql(_query("again", window))
    late = Follower(reader, "again")
    clock.until(lambda: bool(late.seen))
    found["replay"].append(min(late.seen.values()) - began)
    reader.cql(f"DROP QUERY again; DROP QUERY q{name}")


def _query(name: str, window: int) -> str:
    return (
        f"CREATE QUERY {name} AS SELECT ISTREAM T.k, S.v FROM S [Range {window}], T [Now] "
        "WHERE S.k = T.k"
    )


def _place(reader: NodeProcess, text: str, at: str) -> None:
    (query,) = compile_script(f"{STREAMS}; {text}").queries
    path = next(p.path for p in places(query.plan) if isinstance(p.node, Join))
    task = Task(query.name, encode_plan(query.plan), "bench", True, (), ())
    placement = encode_placement(cut_plan(query.plan, {path: at}, reader.name), task)
    reader.post("/queries", {"cql": text, "name": "bench", "placement": placement})


class Clock:
    """Pushes on and on: a row of T at each instant meets those of S with its key."""

    def __init__(self, home: NodeProcess, window: int) -> None:
        self._home, self._now = home, window
        self.killed: set[int] = set()
        instants = pl.int_range(window, eager=True)
        home.push("S", pl.DataFrame({"ts": instants, "k": instants % KEYS, "v": instants}))
        home.push("T", pl.DataFrame({"ts": [window - 1], "k": [0]}))

    def step(self) -> None:
        now = self._now
        self._home.push("S", pl.DataFrame({"ts": [now], "k": [now % KEYS], "v": [now]}))
        self._home.push("T", pl.DataFrame({"ts": [now], "k": [now % KEYS]}))
        self._now += 1
        time.sleep(_STEP_S)

    def until(self, is_so: Any) -> None:
        def look() -> bool:
            self.step()
            return bool(is_so())

        await_(look, "a row", 0)
