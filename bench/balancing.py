"""Half of a join's work is at one of four slow machines: who mends it (D-CAPE, figure 7), live.

Streams are at home at a node of their own, and results are read there; the parts of a three-way
join are at four nodes that have a share of a core each. Half of the parts are at the first; then B
and C fall to a twentieth of their rate. A balancer moves parts (by MSLB, by PTLB, or not at all);
nodes keep intermediates as they find best, or never. Beside it stands the simulated experiment
`dcape-adaptation`, whose machines are modelled: there a machine is short of comparisons, here of
its share of a processor, of which a tick takes some whatever it does.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.nodes import NodeProcess, await_, started
from bench.slowed import Slowed
from thalweg.api.network.forwarding import HERE
from thalweg.cli.network.running import Wanted
from thalweg.engine.site import IN_PROCESS
from thalweg.experiments.report import Goal, Progress, Report
from thalweg.experiments.sqpr.figures import curves

NONE, LM = "No-Adapt", "LM-only"
SETTINGS: dict[str, tuple[str | None, bool]] = {  # how parts move, whether shapes change
    NONE: (None, False),
    LM: (None, True),
    "PTLB-only": ("ptlb", False),
    "MSLB-only": ("mslb", False),
    "LM-PTLB": ("ptlb", True),
    "LM-MSLB": ("mslb", True),
}
STREAMS = ("A", "B", "C")
QUERY = (
    "CREATE QUERY q AS SELECT A.k, A.id AS a, B.id AS b, C.id AS c "
    "FROM A [Range {w}], B [Range {w}], C [Range {w}] WHERE A.k = B.k AND B.k = C.k"
)
PUSH_EVERY_S = 0.25
LEAD_MS = 60_000  # of time in which nothing has come yet


@dataclass(frozen=True)
class Parameters:
    seconds: int = 120
    change_s: int = 30
    rate: int = 4_000  # tuples a second of each stream
    slow_rate: int = 200  # of B and C from the change on
    window_s: int = 20
    keys: int = 200_000
    machines: int = 4
    parts: int = 12
    share: float = 0.15  # of a core that each machine has
    tick_interval_ms: int = 200
    seed: int = 1

    @classmethod
    def quick(cls) -> Parameters:
        return cls(seconds=40, change_s=10, window_s=5)


def run(p: Parameters, progress: Progress) -> Report:
    rows, series = [], {}
    for number, name in enumerate(SETTINGS):
        progress(name, number / len(SETTINGS))
        with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
            row, series[name] = measure(p, Path(folder), name)
        rows.append(row)
        progress(f"{name}: {row['results']:,} results in {p.seconds} s")
    for row in rows:
        row["× No-Adapt"] = round(row["results"] / max(1, rows[0]["results"]), 3)
    whole = {row["results in all"] for row in rows}
    best = max(r["× No-Adapt"] for r in rows if r["setting"] in ("LM-PTLB", "LM-MSLB"))
    alone = max(r["× No-Adapt"] for r in rows if r["setting"] in (LM, "PTLB-only", "MSLB-only"))
    return Report(
        "balancing",
        "Balancing and local re-optimisation, together and alone, live (D-CAPE, figure 7)",
        asdict(p),
        rows,
        [
            Goal("settings that differ in their results", len(whole) - 1, 0, "", False),
            Goal("both over No-Adapt", best, 1.4, "×"),
            Goal("both over the better alone", round(best / alone, 3), 1.0, "×"),
        ],
        figures={
            "throughput": curves(
                range(p.seconds + 1),
                {name: [counts] for name, counts in series.items()},
                across="seconds",
                up="results",
                title="Results said so far",
            )
        },
    )


def measure(p: Parameters, folder: Path, name: str) -> tuple[dict[str, Any], list[float]]:
    """One setting: what it said by the end of the arrivals, by second, and in all."""
    way, shapes = SETTINGS[name]
    slow = [Wanted(f"m{i + 1}", "machines", IN_PROCESS) for i in range(p.machines)]
    if way is not None:
        slow[-1] = replace(slow[-1], balance=(0.25, 5.0), balance_by=way)
    more = [] if shapes else ["--no-intermediates"]
    with started(folder, [Wanted("home", "home", IN_PROCESS), *slow], p.tick_interval_ms, more) as (
        home,
        *machines,
    ):
        for stream in STREAMS:
            home.cql(f"CREATE STREAM {stream} (k BIGINT, id BIGINT) TIMESTAMP BY ts BIGINT")
        _put(home, machines, p)
        with Slowed(machines, [p.share] * p.machines).slowed(), _fed(p, home) as begun:
            counts = [0.0]
            for second in range(1, p.seconds + 1):
                time.sleep(max(0.0, begun + second - time.perf_counter()))
                counts.append(float(home.get("/queries/q")["rows"]))
        await_(lambda: home.frontier("q") >= LEAD_MS + 1000 * p.seconds, "all results")
        journal = home.get("/network/moves")
        found = {
            "setting": name,
            "results": round(counts[-1]),
            "results in all": home.get("/queries/q")["rows"],
            "all after s": round(time.perf_counter() - begun, 1),
            "moves": sum(m["state"] == "done" and "balancer" in m["asked_by"] for m in journal),
            "parts at m1": _parts_at(machines[0]),
            "machines' CPU s": round(sum(m.cpu_s for m in machines), 1),
        }
        return found, counts


def _put(home: NodeProcess, machines: list[NodeProcess], p: Parameters) -> None:
    """Half of the parts at the first machine, before anything has come."""
    names = ",".join(m.name for m in machines)
    home.cql(QUERY.format(w=1000 * p.window_s), {"thalweg-spread": f"{names}/{p.parts}"})
    first, *others = machines
    await_(lambda: all(_parts_at(m) == p.parts // p.machines for m in machines), "the parts")
    begun = time.monotonic()

    def goes_on(is_so: Callable[[], bool]) -> None:
        """Parts change hands at an instant: so time has to pass, without rows."""
        while not is_so():
            if (now := round(1000 * (time.monotonic() - begun))) > LEAD_MS:
                raise TimeoutError("the parts have not come to their places")
            for stream in STREAMS:
                home.heartbeat(stream, now)
            time.sleep(0.05)

    goes_on(lambda: home.frontier("q") > 0)
    for node in others:
        while _parts_at(node) > p.parts // 2 // len(others):  # again, if it could not go then
            last = node.get("/network/fragments", headers={HERE: "1"})[-1]["publication"]
            node.post("/network/moves", {"publication": last, "to": first.name, "by": "precopy"})
            goes_on(partial(_rests, node))
    goes_on(lambda: _parts_at(first) == p.parts // 2)


def _rests(node: NodeProcess) -> bool:
    return all(m["is_over"] for m in node.get("/network/moves", headers={HERE: "1"}))


def _parts_at(node: NodeProcess) -> int:
    return len(node.get("/network/fragments", headers={HERE: "1"}))


@contextmanager
def _fed(p: Parameters, home: NodeProcess) -> Iterator[float]:
    """Rows come by the clock, whoever can't follow; to the end of the arrivals."""
    begun, stop = time.perf_counter(), threading.Event()
    random = np.random.default_rng(p.seed)

    def work() -> None:
        pushing = NodeProcess(home.running, home.folder)
        seen = dict.fromkeys(STREAMS, 0)
        for step in range(round(p.seconds / PUSH_EVERY_S)):
            at_s = step * PUSH_EVERY_S
            if stop.wait(max(0.0, begun + at_s - time.perf_counter())):
                break
            for stream in STREAMS:
                is_slow = stream != "A" and at_s >= p.change_s
                count = round((p.slow_rate if is_slow else p.rate) * PUSH_EVERY_S)
                ts = np.sort(random.integers(0, round(1000 * PUSH_EVERY_S), count))
                ids = np.arange(seen[stream], seen[stream] + count)
                seen[stream] += count
                rows = {
                    "ts": ts + LEAD_MS + round(1000 * at_s),
                    "k": random.integers(0, p.keys, count),
                    "id": ids,
                }
                pushing.push(stream, pl.DataFrame(rows))
        for stream in STREAMS:
            pushing.heartbeat(stream, LEAD_MS + 1000 * p.seconds)
        pushing.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield begun
    finally:
        if sys.exc_info()[0] is not None:
            stop.set()
        thread.join()
