"""A fragment's state moves between live nodes while events go on: each way beside stop-copy-start.

A join over a large window runs at one node and is read at another. It moves to a third node and
back, by pre-copy, MSLB and stop-copy-start in turn, in one run and with the same state; at last by
PTLB, while time goes so fast that the window passes. An event is pushed all the time; how long it
takes to its row, before a move and during it, says how much later than usual results came. Nodes
are processes on this machine, with engines inside them. State passes from one to the other as over
a link of `link_mbps`; results are small, and are not slowed.
"""

from __future__ import annotations

import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from bench.measure import percentile
from bench.network_delay import Follower
from bench.nodes import NodeProcess, await_, network
from thalweg.api.network.deployed import encode_placement
from thalweg.api.network.forwarding import HERE
from thalweg.cql import compile_script
from thalweg.experiments.report import Goal, Progress, Report
from thalweg.plan.cutting import places
from thalweg.plan.nodes import Filter
from thalweg.plan.travelling import encode_plan
from thalweg.runtime.data.fragments import cut_plan
from thalweg.runtime.network.measuring import Task

STREAMS = (
    "CREATE STREAM S (k BIGINT, payload VARCHAR) TIMESTAMP BY ts BIGINT; "
    "CREATE STREAM T (k BIGINT, id BIGINT) TIMESTAMP BY ts BIGINT"
)
ROWS_AT_ONCE = 100_000
_AFTER_S = 3.0  # so long the sender is looked at when it has nothing left to do
PRECOPY, MSLB, STOP, PTLB = "precopy", "mslb", "stop", "ptlb"


@dataclass(frozen=True)
class Parameters:
    state_mb: int = 1_000
    payload: int = 400  # bytes of a tuple
    event_ms: int = 50  # between two events
    before_s: float = 10.0  # for the usual delay
    rounds: int = 3  # of a move there and one back
    tick_interval_ms: int = 20
    link_mbps: int = 1_000  # for state
    ways: str = "precopy,mslb,stop,ptlb"
    window_s: float = 20.0  # in which the window passes while PTLB runs

    @classmethod
    def quick(cls) -> Parameters:
        return cls(state_mb=100, before_s=5.0, rounds=1)

    @property
    def rows(self) -> int:
        return self.state_mb * 1_000_000 // (self.payload + 40)


def run(parameters: Parameters, progress: Progress) -> Report:
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as temporary:
        found = measure(Path(temporary), parameters, progress)
    worst: dict[str, float] = {}
    for row in found:
        worst[row["way"]] = max(worst.get(row["way"], 0.0), row["worst extra ms"])
    goals = [Goal("rows lost or doubled", sum(r["wrong rows"] for r in found), 0, "rows", False)]
    if PRECOPY in worst:
        goals.append(Goal("pre-copy: worst extra delay", worst[PRECOPY] / 1e3, 1.0, "s", False))
    if PRECOPY in worst and STOP in worst:
        ratio = worst[PRECOPY] / max(worst[STOP], 1.0)
        goals.append(Goal("pre-copy's worst over stop's", ratio, 0.1, "x", False))
    goals.append(
        Goal("left at the sender", max(r["left at sender MB"] for r in found), 1.0, "MB", False)
    )
    return Report("move", "State that moves between live nodes", asdict(parameters), found, goals)


def measure(folder: Path, p: Parameters, progress: Progress) -> list[dict[str, Any]]:
    options = ["--move-bps", str(p.link_mbps * 1_000_000)]
    with network(folder, 3, p.tick_interval_ms, options) as (home, one, other):
        home.cql(STREAMS)
        _place(home, _query(_window(p)), one.name)
        progress(f"{p.rows:,} tuples")
        _fill(home, p)
        events = Events(home, p)
        try:
            rows = []
            sender, receiver = one, other
            ways = [w for w in p.ways.split(",") if w != PTLB] * p.rounds
            if PTLB in p.ways.split(","):
                ways.append(PTLB)  # the window is gone then
            for number, way in enumerate(ways):
                progress(f"{way}, move {number + 1} of {len(ways)}")
                row = _moved(home, sender, receiver, way, events, p)
                rows.append(row)
                still, worst = row["stood still ms"] / 1e3, row["worst extra ms"] / 1e3
                progress(f"{way} stood still for {still:.2f} s, results were {worst:.2f} s late")
                sender, receiver = receiver, sender
            return rows
        finally:
            events.stop()


def _fill(home: NodeProcess, p: Parameters) -> None:
    text = "x" * p.payload
    for start in range(0, p.rows, ROWS_AT_ONCE):
        ts = pl.int_range(start, min(start + ROWS_AT_ONCE, p.rows), eager=True)
        frame = pl.DataFrame({"ts": ts, "k": ts}).with_columns(pl.lit(text).alias("payload"))
        home.push("S", frame)
        home.push("T", pl.DataFrame({"ts": [int(ts[-1])], "k": [-1], "id": [-1]}))
    home.heartbeat("T", p.rows)
    home.heartbeat("S", p.rows)
    await_(lambda: home.frontier("q") >= p.rows, "the window")


class Events:
    """One event after the other: a tuple of T that meets one of S, and when its row was seen."""

    def __init__(self, home: NodeProcess, p: Parameters) -> None:
        self._home, self._p = home, p
        self.pushed: dict[int, float] = {}
        self.step = 1  # instants from one event to the next
        self.follower = Follower(home, "q")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)

    def _run(self) -> None:
        number, at = 0, self._p.rows
        home = NodeProcess(self._home.running, self._home.folder)
        while not self._stop.wait(self._p.event_ms / 1e3):
            self.pushed[number] = time.perf_counter()
            # What is old passes while PTLB runs: then an event meets what has come with it.
            own = self._p.rows + number
            key = (number * 7919) % self._p.rows if self.step == 1 else own
            home.push("S", pl.DataFrame({"ts": [at], "k": [own], "payload": [""]}))
            home.push("T", pl.DataFrame({"ts": [at], "k": [key], "id": [number]}))
            home.heartbeat("S", at + 1)
            home.heartbeat("T", at + 1)
            number, at = number + 1, at + self.step
        home.close()

    def count_since(self, since: float) -> int:
        return sum(at >= since for at in list(self.pushed.values()))

    def delays(self, since: float, until: float) -> dict[float, float]:
        """Of the events of a time, by when they were pushed, once all of them have been seen."""
        wanted = [n for n, at in list(self.pushed.items()) if since <= at < until]
        await_(lambda: all(n in self.follower.seen for n in wanted), "the rows of all events")
        return {self.pushed[n]: self.follower.seen[n] - self.pushed[n] for n in wanted}


def _moved(
    home: NodeProcess,
    sender: NodeProcess,
    receiver: NodeProcess,
    way: str,
    events: Events,
    p: Parameters,
) -> dict[str, Any]:
    began = time.perf_counter()
    time.sleep(p.before_s)
    usual = list(events.delays(began, time.perf_counter() - 1).values())
    (fragment,) = sender.get("/network/fragments", headers={HERE: "1"})
    if way == PTLB:
        each_s = (time.perf_counter() - began) / max(1, events.count_since(began))
        events.step = max(2, round(_window(p) * each_s / p.window_s))
    cpu, before = (sender.cpu_s, receiver.cpu_s), _memory_mb(sender.pid)
    start = time.perf_counter()
    sender.post(
        "/network/moves", {"publication": fragment["publication"], "to": receiver.name, "by": way}
    )

    def record() -> dict[str, Any]:
        told: dict[str, Any] = sender.get("/network/moves", headers={HERE: "1"})[-1]
        return told

    await_(lambda: bool(record()["is_over"]), "the end of the move", 0.05)
    await_(lambda: not sender.get("/network/fragments", headers={HERE: "1"}), "the readers", 0.05)
    end = time.perf_counter()
    told = record()
    if told["state"] != "done":
        raise RuntimeError(told["error"])
    paid = sender.cpu_s - cpu[0], receiver.cpu_s - cpu[1]
    found = events.delays(start - 1, end + 1)
    delays = list(found.values())
    # Which events were on their way when the fragment stood still, or came afterwards.
    still = told["frozen"] - time.time() + time.perf_counter()
    copying = [d for at, d in found.items() if at + d < still] or [0.0]
    busy, since = sender.cpu_s, time.perf_counter()
    time.sleep(_AFTER_S)
    busy = (sender.cpu_s - busy) / (time.perf_counter() - since)
    ordinary = percentile(usual, 50)
    took = told["ended"] - told["begun"]
    beside = end - start if way == PTLB else 0.0
    return {
        "way": way,
        "state MB": told["total"] / 1e6,
        "sent MB": told["sent"] / 1e6,
        "seconds": took,
        "MB/s": told["sent"] / 1e6 / took,
        "stood still ms": 1e3 * told["stood_still_s"],
        "beside each other s": beside,
        "usual ms": 1e3 * ordinary,
        "usual worst ms": 1e3 * max(usual),
        "median extra ms": 1e3 * max(0.0, percentile(delays, 50) - ordinary),
        "worst extra ms": 1e3 * max(0.0, max(delays) - ordinary),
        "worst extra while it copies ms": 1e3 * max(0.0, max(copying) - ordinary),
        "sender CPU s": paid[0],
        "receiver CPU s": paid[1],
        "sender cores after": busy,
        "left at sender MB": _state_mb(sender),
        "receiver disk MB": _state_mb(receiver),
        "sender memory before MB": before,
        "sender memory MB": _memory_mb(sender.pid),
        "sender memory, not of files MB": _memory_mb(sender.pid, "RssAnon"),
        "receiver memory MB": _memory_mb(receiver.pid),
        "wrong rows": _wrong(home, events),
    }


def _state_mb(node: NodeProcess) -> float:
    """Of tables, on its disk: files that are gone and still mapped take their room, too."""
    found: dict[str, int] = {}
    for path in node.folder.rglob("segments/*"):
        with suppress(FileNotFoundError):  # ticks go on
            found[str(path)] = path.stat().st_size
    for line in Path(f"/proc/{node.pid}/maps").read_text().splitlines():
        span, *_, last = line.split()
        if last == "(deleted)" and "/segments/" in line:
            low, high = (int(a, 16) for a in span.split("-"))
            found[line] = high - low
    return sum(found.values()) / 1e6


def _memory_mb(pid: int, what: str = "VmRSS") -> float:
    """All of it, or only what is not mapped from files (RssAnon)."""
    status = Path(f"/proc/{pid}/status").read_text()
    (kb,) = (line.split()[1] for line in status.splitlines() if line.startswith(f"{what}:"))
    return int(kb) / 1e3


def _wrong(home: NodeProcess, events: Events) -> int:
    """Rows of the events so far, as far as they are retained, that are missing or there twice."""
    rows = home.get("/queries/q/results", params={"format": "json", "limit": 100_000})["rows"]
    seen = [r["row"]["k"] for r in rows if r["row"]["k"] >= 0]
    low, high = min(seen, default=0), max(seen, default=0)
    return len(seen) - len(set(seen)) + (high - low + 1 - len(set(seen)))


def _window(p: Parameters) -> int:
    return 4 * p.rows


def _query(window: int) -> str:
    return (
        f"CREATE QUERY q AS SELECT ISTREAM T.id AS k, S.k AS met FROM S [Range {window}], T [Now] "
        "WHERE S.k = T.k"
    )


def _place(reader: NodeProcess, text: str, at: str) -> None:
    (query,) = compile_script(f"{STREAMS}; {text}").queries
    path = next(p.path for p in places(query.plan) if isinstance(p.node, Filter))
    task = Task(query.name, encode_plan(query.plan), "bench", True, (), ())
    placement = encode_placement(cut_plan(query.plan, {path: at}, reader.name), task)
    reader.post("/queries", {"cql": text, "name": "bench", "placement": placement})
