"""Nodes of a network as processes on this machine, and what each of them costs."""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import polars as pl

from bench.measure import process_cpu_s
from thalweg.api.bodies import ARROW
from thalweg.api.network.forwarding import HERE
from thalweg.cli.network.running import Running, Wanted, start, stop
from thalweg.engine.site import IN_PROCESS

LONGEST_S = 600.0
ROWS_A_PUSH = 200_000


class NodeProcess:
    """One node: asked over HTTP, as users do."""

    def __init__(self, running: Running, folder: Path) -> None:
        self.name, self.pid, self.url, self.folder = running.name, running.pid, running.url, folder
        self.running = running
        self._http = httpx.Client(base_url=running.url, timeout=120, trust_env=False)

    @property
    def cpu_s(self) -> float:
        return process_cpu_s(self.pid)

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def cql(
        self, text: str, headers: Mapping[str, str] | None = None, timeout_s: float = 120
    ) -> None:
        body = {"cql": text}
        self._checked(self._http.post("/queries", json=body, headers=headers, timeout=timeout_s))

    def cql_each(self, texts: list[str]) -> None:
        """For this node alone, names of the network's own among them."""
        body = {"texts": [{"cql": t, "name": str(i)} for i, t in enumerate(texts)]}
        done = self._http.post("/queries/bulk", json=body, headers={HERE: "1"})
        self._checked(done)
        assert not done.json()["failed"], done.json()["results"][0]

    def push(self, stream: str, rows: pl.DataFrame, partition: int = 0) -> None:
        """Again and again while the node is behind, or waits for others; each batch counts once."""
        for some in rows.iter_slices(ROWS_A_PUSH):
            body = BytesIO()
            some.write_ipc_stream(body, compat_level=pl.CompatLevel.oldest())
            path, headers = f"/streams/{stream}/tuples", {"content-type": ARROW}
            params = {"partition": str(partition), "batch_id": secrets.token_hex(8)}
            while True:
                answer = self._http.post(
                    path, content=body.getvalue(), headers=headers, params=params
                )
                if answer.status_code not in (429, 503):
                    break
                time.sleep(0.05)
            told = self._checked(answer).json()
            assert told["repeated"] or told["accepted"] == some.height, answer.text

    def heartbeat(self, stream: str, at: int, partition: int = 0) -> None:
        path = f"/streams/{stream}/heartbeat"
        self._checked(self._http.post(path, json={"at": at}, params={"partition": partition}))

    def frontier(self, query: str) -> int:
        """Up to where a query's result is final."""
        found = self.get(f"/queries/{quote(query, safe='')}", headers={HERE: "1"})["frontier"]
        return -1 if found is None else int(found)

    @property
    def data(self) -> str:
        """Where its publications are read."""
        nodes = {n["name"]: n for n in self.get("/network")["nodes"]}
        return str(nodes[self.name]["data"])

    def get(self, path: str, **options: Any) -> Any:
        return self._checked(self._http.get(path, **options)).json()

    def ask(self, path: str, body: dict[str, Any], headers: Mapping[str, str]) -> Any:
        return self._checked(self._http.post(path, json=body, headers=headers)).json()

    def post(self, path: str, body: dict[str, Any]) -> None:
        """To this node itself."""
        self._checked(self._http.post(path, json=body, headers={HERE: "1"}))

    def _checked(self, answer: httpx.Response) -> httpx.Response:
        if not answer.is_success:
            raise RuntimeError(f"{self.name}: {answer.status_code} {answer.text[:500]}")
        return answer

    def close(self) -> None:
        self._http.close()


def await_(is_so: Callable[[], bool], what: str, pause_s: float = 0.02) -> None:
    until = time.monotonic() + LONGEST_S
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError(f"{what} has not come in {LONGEST_S:.0f} s")
        time.sleep(pause_s)


def network(
    folder: Path, count: int, tick_interval_ms: int = 50, options: Sequence[str] = ()
) -> AbstractContextManager[list[NodeProcess]]:
    """n1, n2, … with engines in their own processes."""
    wanted = [Wanted(f"n{number + 1}", master=IN_PROCESS) for number in range(count)]
    return started(folder, wanted, tick_interval_ms, options)


@contextmanager
def started(
    folder: Path, wanted: Sequence[Wanted], tick_interval_ms: int, options: Sequence[str] = ()
) -> Iterator[list[NodeProcess]]:
    """A network of these nodes."""
    made: list[NodeProcess] = []
    more = ["--tick-interval-ms", str(tick_interval_ms), *options]
    try:
        for node in wanted:
            join = [made[0].running.address] if made else []
            made.append(NodeProcess(start(node, folder, join, more), folder / node.name))
        yield made
    finally:
        for node in made:
            node.go_on()
            node.close()
        stop([n.running for n in made])
