"""Real processes: one node gets a second job that eats its CPU, and its partners take its load.

`THALWEG_PARTNERS=1` (`make soak`) runs it, as it takes minutes. Streams are at home at n1, which
also reads all results; n2, n3 and n4 compute fragments. The second job has its way as one of higher
priority has: whenever it runs, n2 does not (its process is stopped for four fifths of the time, in
slices of some milliseconds). So it takes the same share on a machine that does other things, too.
`THALWEG_PARTNERS_EATERS=6` has so many real jobs instead, which share a processor with n2, for a
machine that does nothing else. In the end every row is what a single node says of the same rows.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from tests.runtime.network.processes import Network, patiently
from tests.runtime.waiting import eventually

from thalweg.plan.nodes import Aggregate
from thalweg.runtime.data.fragments import digest_of

ROUND_S = float(os.environ.get("THALWEG_PARTNERS_ROUND_S", "4"))
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.timeout(1800),
    pytest.mark.skipif("THALWEG_PARTNERS" not in os.environ, reason="THALWEG_PARTNERS=1 runs it"),
]
STREAMS = (
    "CREATE STREAM Bids (item BIGINT, price BIGINT) TIMESTAMP BY ts BIGINT; "
    "CREATE STREAM Sold (item BIGINT) TIMESTAMP BY ts BIGINT"
)
WORKERS = ("n2", "n3", "n4")
QUERIES = 9
EATERS = int(os.environ.get("THALWEG_PARTNERS_EATERS", "0"))
TAKES_S, LEAVES_S = 0.04, 0.01
ROUNDS = 10
PUSH_S, ROWS, STEP, ITEMS = 0.5, 200, 100, 40


def query(number: int) -> str:
    return (
        f"CREATE QUERY q{number} AS SELECT S.item, COUNT(*) AS n, MAX(B.price) AS top "
        f"FROM Bids [Range {600 + number}] B, Sold [Range {400 + number}] S "
        "WHERE B.item = S.item GROUP BY S.item"
    )


class Feeder:
    """The same rows at the same pace, all the time."""

    def __init__(self, network: Network) -> None:
        self._network, self.upto = network, 0
        self.rows: dict[str, list[dict[str, Any]]] = {"Bids": [], "Sold": []}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due = max(due + PUSH_S, time.monotonic())
            self.push()

    def push(self) -> None:
        first, self.upto = self.upto, self.upto + STEP
        times = [first + i * STEP // ROWS for i in range(ROWS)]
        new = {
            "Bids": [{"ts": t, "item": t * 7 % ITEMS, "price": t * 31 % 97} for t in times],
            "Sold": [{"ts": t, "item": t * 11 % ITEMS} for t in times[::3]],
        }
        for stream, rows in new.items():
            self._network.push(["n1"], stream, rows, f"{stream}-{first}")
            self.rows[stream] += rows

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self.push()


@contextmanager
def second_job(pid: int) -> Iterator[None]:
    if EATERS:
        with eating():
            yield
        return
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            os.kill(pid, signal.SIGSTOP)
            over.wait(TAKES_S)
            os.kill(pid, signal.SIGCONT)
            over.wait(LEAVES_S)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        os.kill(pid, signal.SIGCONT)


@contextmanager
def eating() -> Iterator[None]:
    """Jobs that take all that they get of the first processor."""
    command = ["taskset", "-c", "0", sys.executable, "-c", "while True: pass"]
    eaters = [subprocess.Popen(command) for _ in range(EATERS)]
    try:
        yield
    finally:
        for eater in eaters:
            eater.kill()
            eater.wait()


def pin(pid: int, processor: int) -> None:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), {processor})


def pr_max(network: Network) -> float:
    found = patiently(lambda: network.ask("n1", "GET", "/queries")).json()
    return max(float(q["pr"] or 0) for q in found)


def over(network: Network, seconds: float) -> float:
    """The median of PR_max over a while."""
    until, found = time.monotonic() + seconds, []
    while time.monotonic() < until:
        found.append(pr_max(network))
        time.sleep(0.5)
    return median(found)


def moves(network: Network) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = patiently(
        lambda: network.ask("n1", "GET", "/network/moves")
    ).json()
    return found


def tell(text: str) -> None:
    """With -s, for people."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def loads(network: Network) -> dict[str, float]:
    told = patiently(lambda: network.ask("n1", "GET", "/network/partners")).json()
    return {t["node"]: round(t["load"], 2) for t in told}


@dataclass(frozen=True)
class Seen:
    """PR_max before the second job, and in each round with it; what was moved meanwhile."""

    before: float
    rounds: list[float]
    moves: list[dict[str, Any]]

    @property
    def at_last(self) -> float:
        return median(self.rounds[-3:])


def lived_through(folder: Path, *options: str) -> Seen:
    """Every row is judged, too."""
    with Network(folder / "nodes", 4, "--gone-after-s", "600", *options) as network:
        network.cql("n1", STREAMS)
        for number in range(QUERIES):
            at = WORKERS[number % len(WORKERS)]
            network.place("n1", STREAMS, query(number), {Aggregate: at})
        if EATERS:
            for name, node in network.nodes.items():
                pin(node.pid, int(name != "n2"))
        feeder = Feeder(network)
        try:
            eventually(lambda: feeder.upto > 2000)
            time.sleep(ROUNDS * ROUND_S)  # until loads and ratios, which are filtered, are steady
            before, rounds, known = over(network, 3 * ROUND_S), [], len(moves(network))
            tell(f"\n{' '.join(options[:2])} before: PR_max {before:.2f}, loads {loads(network)}")
            with second_job(network.nodes["n2"].pid):
                for number in range(ROUNDS):
                    rounds.append(over(network, ROUND_S))
                    told = [f"{m['at']}>{m['to']}" for m in moves(network)[known:]]
                    shown = f"PR_max {rounds[-1]:.2f}, loads {loads(network)}, moves {told}"
                    tell(f"round {number + 1}: {shown}")
                found = Seen(before, rounds, moves(network)[known:])
        finally:
            feeder.stop()
        tell(f"at last: PR_max {found.at_last:.2f} = {found.at_last / before:.2f} x before")
        for m in found.moves:
            tell(f"{m['fragment']} {m['at']} > {m['to']} for {m['asked_by']}: {m['why']}")
        judged(network, feeder, folder)
        return found


def test_a_second_job_at_one_node_is_balanced_away(tmp_path: Path) -> None:
    options = ("--controller", "partners", "--partners", f"round_s={ROUND_S}")
    seen = lived_through(tmp_path, *options)
    assert any(m["at"] == "n2" and m["state"] == "done" for m in seen.moves)
    assert seen.at_last <= 1.5 * seen.before, seen


def test_without_a_controller_it_stays(tmp_path: Path) -> None:
    seen = lived_through(tmp_path)
    assert seen.moves == []
    assert seen.at_last > seen.before, seen


@pytest.mark.parametrize("role", ["asks", "gives"])
def test_whoever_is_killed_in_the_middle_no_fragment_is_lost(tmp_path: Path, role: str) -> None:
    options = ("--gone-after-s", "600", "--controller", "partners", "--partners", "round_s=1")
    with Network(tmp_path / "nodes", 4, *options) as network:
        network.cql("n1", STREAMS)
        for number in range(QUERIES):
            network.place("n1", STREAMS, query(number), {Aggregate: "n2"})
        feeder = Feeder(network)
        try:
            eventually(lambda: bool(moves(network)))
            first = moves(network)[0]
            assert first["at"] == "n2"
            struck = first["to"] if role == "asks" else "n2"
            network.kill(struck)
            time.sleep(2)
            network.begin(struck)
            eventually(lambda: moves(network)[0]["is_over"])
        finally:
            feeder.stop()
        judged(network, feeder, tmp_path)
        # One that is computed anew stands at two nodes until its reader has gone over.
        found = {digest_of(f) for n in network.nodes for f in network.fragments(n)}
        assert len(found) == QUERIES


def judged(network: Network, feeder: Feeder, folder: Path) -> None:
    """A single node that gets the same rows says the same."""
    final = feeder.upto - STEP - 10
    with Network(folder / "judge", 1) as judge:
        judge.cql("n1", STREAMS)
        for number in range(QUERIES):
            judge.cql("n1", query(number))
        for stream, rows in feeder.rows.items():
            for first in range(0, len(rows), 5_000):
                judge.push(["n1"], stream, rows[first : first + 5_000], f"{stream}-{first}")
        for number in range(QUERIES):
            name = f"q{number}"
            said = []
            for one in (network, judge):
                eventually(lambda o=one, n=name: o.final(n, "n1") >= final, 300)  # type: ignore[misc]
                said.append([row for row in one.said(name, "n1") if row[0] < final])
            assert said[0] == said[1], name
            assert len(said[0]) > 100
