"""A join across processes that are killed, one after the other, while rows come."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from tests.runtime.network.processes import Network, patiently
from tests.runtime.swap.joining import STREAMS, THREE_WAY, expected, rows_of

KILLS = int(os.environ.get("THALWEG_SWAP", "0"))


@pytest.mark.skipif(not KILLS, reason="processes are killed for minutes: `make soak`")
def test_no_row_is_lost_or_doubled_by_kill_9(tmp_path: Path) -> None:
    homes = {"R": "n1", "S": "n2", "T": "n3"}
    with Network(tmp_path, 4) as network:
        for stream, node in homes.items():
            network.cql(node, STREAMS[stream])
        body = {"cql": f"CREATE QUERY q AS {THREE_WAY}"}
        headers = {"thalweg-plan": "swap"}
        patiently(lambda: network.ask("n4", "POST", "/queries", json=body, headers=headers))
        upto, done = 1, threading.Event()

        def push() -> None:
            nonlocal upto
            while not done.is_set():
                for stream in homes:
                    rows = rows_of(stream, upto, upto + 10)
                    network.push([homes[stream]], stream, rows, f"{stream}{upto}")
                upto += 10
                time.sleep(0.05)

        pushing = threading.Thread(target=push)
        pushing.start()
        try:
            for number in range(KILLS):
                time.sleep(1.5)
                victim = f"n{number % 4 + 1}"
                network.kill(victim)
                time.sleep(0.3 * (number % 3))
                network.begin(victim)
        finally:
            done.set()
            pushing.join(200)
        assert not pushing.is_alive()
        until = time.monotonic() + 240
        while network.final("q", "n4") < upto - 1:
            assert time.monotonic() < until, network.ask("n4", "GET", "/queries/q/placed").text
            time.sleep(0.2)
        path = "/queries/q/results?format=json&limit=100000"
        rows = patiently(lambda: network.ask("n4", "GET", path)).json()["rows"]
        said = [(r["ts"], r["op"], tuple(r["row"].values())) for r in rows]
        found = sorted((c for c in said if c[0] < upto - 1), key=repr)
        assert found == expected(THREE_WAY, upto)
        assert found
