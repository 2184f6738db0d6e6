"""Real processes behind links with delays: trees that adapt while a node is slowed, and others die.

`THALWEG_TREES=16` (`make soak`) says of how many nodes; without it nothing is run here, as it takes
minutes. The home is far from readers and near to brokers, and each reader is near to one of those,
as where a backbone is quicker than the direct way.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from tests.runtime.network.processes import Network, patiently
from tests.runtime.waiting import eventually

from thalweg.api.network.forwarding import HERE
from thalweg.cli.network.running import Wanted
from thalweg.engine.site import IN_PROCESS

COUNT = int(os.environ.get("THALWEG_TREES", "0"))
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(COUNT < 6, reason="THALWEG_TREES says of how many nodes, 6 or more"),
]
ROUND_S, ROUNDS = 10.0, 5
BROKERS = ("b1", "b2", "b3", "b4")
PUSH_EVERY_S, ROWS = 1.0, 5
# Far more than what rows wait in a node on a machine that is busy with other things, too.
NEAR_S, BESIDE_S, FAR_S = 0.01, 0.03, 0.25


class Feeder:
    """Pushes rows all the time."""

    def __init__(self, network: Network) -> None:
        self._network, self.pushed = network, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(PUSH_EVERY_S):
            self.push()

    def push(self) -> None:
        times = range(self.pushed, self.pushed + ROWS)
        rows = [{"k": t % 10, "t": t} for t in times]
        self._network.push(["home"], "S", rows, f"p{self.pushed}")
        self.pushed += ROWS

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)


@contextmanager
def slowed(pid: int, share: float = 0.1) -> Iterator[None]:
    """A process that runs a tenth of the time."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            os.kill(pid, signal.SIGSTOP)
            stop.wait(0.1 * (1 - share))
            os.kill(pid, signal.SIGCONT)
            stop.wait(0.1 * share)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        os.kill(pid, signal.SIGCONT)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def told(network: Network, period_s: float) -> list[dict[str, Any]]:
    """By each reader itself: links are not loaded by asking."""
    path, found = f"/network/fidelity?period_s={period_s}&periods=1", []
    for name in network.nodes:
        if name.startswith("r"):
            ask = partial(network.ask, name, "GET", path, headers={HERE: "1"})
            found += patiently(ask).json()
    return found


def fidelity(rows: list[dict[str, Any]]) -> float:
    known = [row["fidelity"] for row in rows if row["fidelity"] is not None]
    return sum(known) / len(known)


class Hung:
    """Readers under brokers, and rows that flow."""

    def __init__(self, network: Network, readers: list[str]) -> None:
        self.network, self.readers, self.feeder = network, readers, Feeder(network)
        began = time.monotonic()
        eventually(self._is_hung, within_s=600)
        rounds = (time.monotonic() - began) / ROUND_S
        say(f"\nunder brokers after {rounds:.1f} rounds: {self.parents()}")

    def parents(self) -> Counter[str]:
        return Counter(row["from"] for row in told(self.network, ROUND_S))

    def _is_hung(self) -> bool:
        time.sleep(1)
        parents = self.parents()
        return sum(parents[b] for b in BROKERS) >= len(self.readers) - 1


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hung]:
    readers = [f"r{i + 1}" for i in range(COUNT - 1 - len(BROKERS))]
    broker_of = {r: BROKERS[i % len(BROKERS)] for i, r in enumerate(readers)}

    def delay_s(one: str, other: str) -> float:
        ends = {one, other}
        if "home" in ends:
            return NEAR_S if ends & {*BROKERS} else FAR_S
        if one in readers and other in readers:
            return FAR_S
        near = any(broker_of.get(a) == b for a, b in ((one, other), (other, one)))
        return NEAR_S if near else BESIDE_S

    options = {"trees": "adaptive", "round_s": ROUND_S}
    wanted = [Wanted("home", master=IN_PROCESS, **options)]  # type: ignore[arg-type]
    wanted += [Wanted(b, engine="none", **options) for b in BROKERS]  # type: ignore[arg-type]
    wanted += [Wanted(r, master=IN_PROCESS, **options) for r in readers]  # type: ignore[arg-type]
    with Network(tmp_path_factory.mktemp("trees"), wanted=wanted, doors=True) as network:
        assert network.doors is not None
        network.cql("home", "CREATE STREAM S (k BIGINT, t BIGINT) TIMESTAMP BY t")
        for reader in readers:
            text = f"CREATE QUERY q{reader} AS SELECT ISTREAM k, t FROM S [Range 3]"
            network.cql(reader, text)
        network.doors.delay(delay_s)
        made = Hung(network, readers)
        yield made
        made.feeder.stop()


def test_a_slow_node_costs_little_time(hung: Hung) -> None:
    network = hung.network
    time.sleep(2 * ROUND_S)  # what is measured is a period, not a moment
    before = fidelity(told(network, 2 * ROUND_S))
    victim = hung.parents().most_common(1)[0][0]
    below = hung.parents()[victim]
    say(f"before: {before:.4f}; {victim} is slowed to a tenth, with {below} below")
    with slowed(network.nodes[victim].pid):
        course = []
        for _ in range(ROUNDS):
            time.sleep(ROUND_S)
            rows = told(network, ROUND_S)
            course.append((round(fidelity(rows), 4), hung.parents()[victim]))
        # As long a period as before: a round has ten pushes, and some points are noise.
        after = fidelity(told(network, 2 * ROUND_S))
        say(f"by round, fidelity and children of {victim}: {course}; at last {after:.4f}")
    assert after >= 0.95 * before


def test_nodes_that_are_killed_cost_no_rows(hung: Hung) -> None:
    network, feeder, readers = hung.network, hung.feeder, hung.readers
    gone, dead = hung.parents().most_common(1)[0][0], readers[0]
    below = hung.parents()[gone]
    network.kill(gone)
    network.kill(dead)
    say(f"{gone}, with {below} below, and {dead} are killed")
    time.sleep(ROUND_S)
    network.begin(dead)
    eventually(lambda: hung.parents()[gone] == 0, within_s=300)
    feeder.stop()
    for _ in range(3):
        feeder.push()
    last = feeder.pushed - 1
    for reader in readers:
        eventually(lambda r=reader: network.final(f"q{r}", r) >= last, within_s=300)  # type: ignore[misc]
        said = [values[1] for _, _, values in network.said(f"q{reader}", reader)]
        assert said == list(range(last)), reader
    say(f"{last} rows, all of them once at {len(readers)} readers; {hung.parents()}")
