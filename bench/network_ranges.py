"""Many subscriptions to parts of a stream, against one to all of it: what the publisher pays.

A subscription is a query of the publisher's own, a member of a group. All readers pull, each by a
call of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from bench.network_subscription import INSTANTS, KEYS, SCHEMA, batches
from bench.nodes import await_, network
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.client import DataClient
from thalweg.runtime.data.messages import Open, Opened, Read

CONNECTIONS = 8
HOLDS_BACK = 1  # a partition that makes all of a push wait for one tick


def measure(folder: Path, subscriptions: int, rows: int, ticks: int, seed: int) -> float:
    """Seconds of the publisher's CPU a tick of so many rows; the first tick is not counted."""
    with network(folder, 1) as (home,):
        home.cql(SCHEMA)
        client = DataClient(home.data)
        names = [_opened(client, i, where) for i, where in enumerate(_ranges(subscriptions))]
        home.heartbeat("S", 0, HOLDS_BACK)
        readers = Readers(home.data, names)
        began = home.cpu_s
        for number, batch in enumerate(batches(rows * ticks, rows, seed), 1):
            home.push("S", batch)
            for partition in (0, HOLDS_BACK):
                home.heartbeat("S", number * INSTANTS, partition)
            wanted = rows * number
            await_(lambda wanted=wanted: readers.rows >= wanted, "all rows")  # type: ignore[misc]
            if number == 1:
                began = home.cpu_s
        spent = home.cpu_s - began
        readers.stop()
    assert readers.rows == rows * ticks, "a row came twice, or not at all"
    return spent / (ticks - 1)


def _ranges(count: int) -> list[tuple[str, ...] | None]:
    """Conditions that cut all keys into so many ranges; None wants them all."""
    width = -(-KEYS // count)
    lows = range(0, KEYS, width)
    return [(f"k >= {low} AND k < {low + width}",) for low in lows] if count > 1 else [None]


def _opened(client: DataClient, number: int, where: tuple[str, ...] | None) -> str:
    opened = client.ask(Open("S", f"r{number}", 1, 0, where))
    assert isinstance(opened, Opened), opened
    return opened.publication


class Readers:
    """A thread for each subscription, over a few connections."""

    def __init__(self, address: str, publications: Sequence[str]) -> None:
        self._clients = [DataClient(address) for _ in range(CONNECTIONS)]
        self._rows = [0] * len(publications)
        self._stopped = False
        for place, publication in enumerate(publications):
            client = self._clients[place % CONNECTIONS]
            argument = (client, publication, place)
            threading.Thread(target=self._run, args=argument, daemon=True).start()

    @property
    def rows(self) -> int:
        return sum(self._rows)

    def stop(self) -> None:
        self._stopped = True

    def _run(self, client: DataClient, publication: str, place: int) -> None:
        since = BEGINNING
        while not self._stopped:
            for range_, rows in client.read(Read(publication, since)):
                self._rows[place] += rows.height
                since = max(since, range_.upto)
                if self._stopped:
                    return
