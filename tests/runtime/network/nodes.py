"""Nodes in this process, with real sockets between them and a directory that all share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from thalweg.api.server import Server, listen_on
from thalweg.cql import compile_placed
from thalweg.engine.site import IN_PROCESS, open_site
from thalweg.engine.site.publications import MIRRORS
from thalweg.engine.site.settings import SiteSettings
from thalweg.runtime.data.client import DataClient
from thalweg.runtime.data.server import DataServer
from thalweg.runtime.network.directory import Defined, NodeInfo
from thalweg.runtime.network.mirrors import Mirrors
from thalweg.runtime.network.node import Limits, Node


@dataclass
class Shared:
    """What all nodes know, at once."""

    infos: dict[str, NodeInfo] = field(default_factory=dict)
    entries: dict[str, Defined] = field(default_factory=dict)
    listeners: list[Callable[[str], None]] = field(default_factory=list)


@dataclass
class SharedDirectory:
    shared: Shared
    me: NodeInfo

    def nodes(self) -> list[NodeInfo]:
        return sorted(self.shared.infos.values(), key=lambda n: n.name)

    def is_up(self, node: str) -> bool:
        return node in self.shared.infos

    def defined(self) -> Mapping[str, Defined]:
        return dict(self.shared.entries)

    def change(self, had: Iterable[tuple[str, str, str]], gone: Iterable[str] = ()) -> None:
        for name in gone:
            self.shared.entries.pop(name.lower(), None)
        for name, kind, text in had:
            self.shared.entries[name.lower()] = Defined(name, kind, text, self.me.name)

    def forget(self, node: str) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        self.shared.infos.pop(self.me.name)
        for listener in self.shared.listeners:
            listener(self.me.name)

    def on_gone(self, listener: Callable[[str], None]) -> None:
        self.shared.listeners.append(listener)


class LiveNode:
    def __init__(
        self, name: str, folder: Path, shared: Shared, limits: Limits | None = None
    ) -> None:
        self.name, self.folder, self.shared, self.limits = name, folder / name, shared, limits
        self.open()

    def open(self) -> None:
        known = self.shared.infos.get(self.name)
        port = 0 if known is None else int(known.http.rpartition(":")[2])
        listener = listen_on("127.0.0.1", port)
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.data = DataServer("127.0.0.1:0" if known is None else known.data)
        info = NodeInfo(self.name, self.name, self.url, self.data.address)
        self.shared.infos[self.name] = info
        directory = SharedDirectory(self.shared, info)
        mirrors = Mirrors(directory, DataClient)
        site = open_site(
            self.folder,
            compile_placed,
            master=IN_PROCESS,
            settings=SiteSettings(durable=False, tick_interval_s=0.01),
            schemes={MIRRORS: mirrors.source},
        )
        self.node = Node(site, directory, mirrors, self.data, self.limits)
        ready = threading.Event()
        self._server = Server(site, ready.set, node=self.node)
        self._thread = threading.Thread(target=self._server.run, args=([listener],))
        self._thread.start()
        assert ready.wait(10)
        self.http = httpx.Client(base_url=self.url, timeout=20, trust_env=False)

    def close(self) -> None:
        self.http.close()
        self._server.should_exit = True
        self._thread.join(15)
        self.node.close()

    # --- as a user does it

    def cql(self, text: str, strategy: str = "local") -> dict[str, Any]:
        headers = {"thalweg-strategy": strategy}
        answer = self.http.post("/queries", json={"cql": text}, headers=headers)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def push(self, stream: str, *rows: dict[str, Any]) -> None:
        answer = self.http.post(f"/streams/{stream}/tuples", json=list(rows))
        assert answer.is_success, answer.text
        assert answer.json()["accepted"] == len(rows)

    def rows(self, query: str) -> list[dict[str, Any]]:
        answer = self.http.get(f"/queries/{query}/results", params={"format": "json"})
        assert answer.is_success, answer.text
        found: list[dict[str, Any]] = answer.json()["rows"]
        return found

    def values(self, query: str) -> list[dict[str, Any]]:
        return [row["row"] for row in self.rows(query)]

    def names(self, what: str) -> dict[str, str]:
        return {row["name"]: row["node"] for row in self.http.get(f"/{what}").json()}


def eventually(is_so: Callable[[], bool], within_s: float = 20.0) -> None:
    until = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < until, "it has not come to pass"
        time.sleep(0.02)
