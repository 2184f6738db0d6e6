"""Nodes of a network as processes, for tests: killed, paused, started again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from tests.runtime.doors import Doors

from thalweg.api.network.deployed import encode_placement
from thalweg.api.network.forwarding import HERE
from thalweg.cli.network.running import Running, Wanted, is_running, meet, start, stop
from thalweg.cql import compile_script
from thalweg.engine.site import IN_PROCESS
from thalweg.plan.cutting import places
from thalweg.plan.travelling import encode_plan
from thalweg.runtime.data.fragments import cut_plan
from thalweg.runtime.network.measuring import Task


class Network:
    def __init__(
        self,
        folder: Path,
        count: int = 3,
        *options: str,
        wanted: Sequence[Wanted] = (),
        doors: bool = False,
    ) -> None:
        """With doors, links between nodes can be cut and slowed."""
        self.doors = Doors(folder) if doors else None
        self._wanted = {w.name: w for w in wanted}
        self.folder, self._options = folder, ["--tick-interval-ms", "5", *options]
        self.nodes: dict[str, Running] = {}
        self._names = list(self._wanted) or [f"n{number + 1}" for number in range(count)]
        self.begin_all()

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes.values():
            with suppress(ProcessLookupError):
                os.kill(node.pid, signal.SIGCONT)
        if self.doors is not None:
            self.doors.heal()
        left = stop(list(self.nodes.values()))
        if self.doors is not None:
            self.doors.close()
        assert left == []

    def begin_all(self) -> None:
        away = [n for n in self._names if n not in self.nodes or not is_running(self.nodes[n])]
        if len(away) == len(self._names):
            self.begin(away.pop(0))
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(self.begin, away))
        meet(list(self.nodes.values()))

    def begin(self, name: str) -> None:
        join = [n.address for other, n in list(self.nodes.items()) if other != name][:1]
        wanted = self._wanted.get(name) or Wanted(name, master=IN_PROCESS)
        behind = [] if self.doors is None else self.doors.options(name)
        if behind:
            wanted = replace(wanted, port=0)  # a door has chosen it
        running = start(wanted, self.folder, join, [*self._options, *behind])
        url = running.url if self.doors is None else self.doors.url(name)
        self.nodes[name] = replace(running, url=url)

    def kill(self, name: str) -> None:
        os.kill(self.nodes[name].pid, signal.SIGKILL)
        os.waitpid(self.nodes[name].pid, 0)

    def pause(self, name: str) -> None:
        os.kill(self.nodes[name].pid, signal.SIGSTOP)

    def go_on(self, name: str) -> None:
        os.kill(self.nodes[name].pid, signal.SIGCONT)

    def ask(self, node: str, method: str, path: str, **options: Any) -> httpx.Response:
        url = self.nodes[node].url + path
        with httpx.Client(trust_env=False, timeout=httpx.Timeout(40, connect=5)) as client:
            return client.request(method, url, **options)

    def cql(self, node: str, text: str, strategy: str = "local") -> None:
        headers = {"thalweg-strategy": strategy}
        patiently(lambda: self.ask(node, "POST", "/queries", json={"cql": text}, headers=headers))

    def place(self, node: str, streams: str, text: str, at: Mapping[type, str]) -> None:
        """A query whose topmost operators of these kinds run at other nodes."""
        (query,) = compile_script(f"{streams}; {text}").queries
        cuts: dict[tuple[int, ...], str] = {}
        for kind, there in at.items():
            found = (p.path for p in places(query.plan) if isinstance(p.node, kind))
            cuts[next(found)] = there
        task = Task(query.name, encode_plan(query.plan), "by hand", False, (), ())
        placement = encode_placement(cut_plan(query.plan, cuts, node), task)
        body = {"cql": text, "name": "test", "placement": placement}
        patiently(lambda: self.ask(node, "POST", "/queries", json=body, headers={HERE: "1"}))

    def final(self, query: str, at: str) -> int:
        mark = patiently(lambda: self.ask(at, "GET", f"/queries/{query}")).json()["frontier"]
        return -1 if mark is None else int(mark)

    def said(self, query: str, at: str) -> list[tuple[Any, ...]]:
        path = f"/queries/{query}/results?format=json"
        rows = patiently(lambda: self.ask(at, "GET", path)).json()["rows"]
        return [(r["ts"], r["op"], tuple(r["row"].values())) for r in rows]

    def fragments(self, node: str) -> list[str]:
        """What it computes for others."""
        found = patiently(lambda: self.ask(node, "GET", "/network/publications")).json()
        return [name for name in found if name.startswith("pub/#")]

    def push(self, nodes: list[str], stream: str, rows: list[dict[str, Any]], id_: str) -> None:
        """By any node, and again until it is there: a batch id counts once."""
        tried = iter(nodes * 200)
        path = f"/streams/{stream}/tuples?batch_id={id_}"
        patiently(lambda: self.ask(next(tried), "POST", path, json=rows))


def patiently(ask: Callable[[], httpx.Response], within_s: float = 180.0) -> httpx.Response:
    until, was_lost = time.monotonic() + within_s, False
    while True:
        try:
            answer = ask()
            # What was asked may have been done, and only the answer was lost.
            if answer.is_success or (was_lost and "there already is" in answer.text):
                return answer
            # News of a stream takes a moment to reach all nodes.
            is_unheard = "there is no stream" in answer.text
            assert is_unheard or answer.status_code in (429, 503), f"{answer.url}: {answer.text}"
        except httpx.TransportError:
            was_lost = True
        assert time.monotonic() < until, "nobody answers"
        time.sleep(0.1)
