"""Peers in this process, with real sockets between them: nodes as `thalweg node --mode p2p`."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import httpx
from tests.runtime.peers.relay import Relays
from tests.runtime.waiting import eventually

from thalweg.api.server import Server, listen_on
from thalweg.engine.site.settings import SiteSettings
from thalweg.runtime.network.opening import P2P, NodeSettings, keep_ports, kept_ports, open_node


class LivePeer:
    def __init__(
        self,
        name: str,
        folder: Path,
        join: tuple[str, ...],
        copies: int,
        room: int | None = None,
        known_as: str | None = None,
    ) -> None:
        self.name, self.folder, self._join, self._copies = name, folder / name, join, copies
        self._room, self._known_as = room, known_as
        self.open()

    def open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        listener = listen_on("127.0.0.1", kept_ports(self.folder).get("http", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        keep_ports(self.folder, http=listener.getsockname()[1])
        chosen = NodeSettings(
            self.name,
            self.folder,
            join=self._join,
            mode=P2P,
            copies=self._copies,
            room=self._room,
            address=self._known_as,
            settings=SiteSettings(durable=False, tick_interval_s=0.02),
        )
        self.node, self._close = open_node(chosen, self.url)
        self.address = self.node.directory.me.address
        ready = threading.Event()
        self._server = Server(self.node.site, ready.set, node=self.node)
        self._thread = threading.Thread(target=self._server.run, args=([listener],))
        self._thread.start()
        assert ready.wait(30)
        self.http = httpx.Client(base_url=self.url, timeout=300, trust_env=False)

    def close(self, *, crash: bool = False) -> None:
        """A crash says no goodbye: to the others it is as if the process was killed."""
        self.http.close()
        self._server.should_exit = True
        self._thread.join(30)
        if crash:
            self.node.peers._driver.close()
            self.node.close()
        else:
            self._close()


class Peers:
    def __init__(
        self,
        folder: Path,
        count: int,
        copies: int = 0,
        room: int | None = None,
        relays: Relays | None = None,
    ) -> None:
        self.nodes: dict[str, LivePeer] = {}
        for number in range(count):
            join = (self.nodes["n1"].address,) if self.nodes else ()
            name = f"n{number + 1}"
            known_as = None if relays is None else relays.host(number)
            self.nodes[name] = LivePeer(name, folder, join, copies, room, known_as)
            if relays is not None:
                relays.stand_before(self.nodes[name].address)
        self._up = set(self.nodes)

    def __enter__(self) -> Peers:
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._up:
            self.nodes[name].close()

    def crash(self, name: str) -> None:
        self._up.discard(name)
        self.nodes[name].close(crash=True)

    def start(self, name: str) -> None:
        self.nodes[name].open()
        self._up.add(name)

    def stop_all(self) -> None:
        for name in sorted(self._up):
            self.nodes[name].close()
        self._up = set()

    def start_all(self) -> None:
        for name in self.nodes:
            self.start(name)

    # --- as a user does it

    def ask(self, node: str, method: str, path: str, **options: Any) -> httpx.Response:
        """Again while nodes have not heard of each other, or are away."""
        until = time.monotonic() + 120
        while True:
            answer = self.nodes[node].http.request(method, path, **options)
            is_early = "there is no stream" in answer.text or answer.status_code in (429, 503)
            if not is_early or time.monotonic() > until:
                return answer
            time.sleep(0.1)

    def cql(self, node: str, text: str, *, eager: bool = False) -> dict[str, Any]:
        headers = {"thalweg-eager": "1"} if eager else {}
        answer = self.ask(node, "POST", "/queries", json={"cql": text}, headers=headers)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def push(
        self, node: str, stream: str, rows: list[dict[str, Any]], batch: str | None = None
    ) -> dict[str, Any]:
        params = {} if batch is None else {"batch_id": batch}
        path = f"/streams/{stream}/tuples"
        answer = self.ask(node, "POST", path, json=rows, params=params)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def promise(self, node: str, stream: str, at: int) -> None:
        answer = self.ask(node, "POST", f"/streams/{stream}/heartbeat", json={"at": at})
        assert answer.is_success, answer.text

    def said(self, node: str, query: str) -> list[tuple[Any, ...]]:
        path = f"/queries/{query}/results?format=json"
        rows = self.ask(node, "GET", path).json()["rows"]
        return [(r["ts"], r["op"], tuple(r["row"].values())) for r in rows]

    def final(self, node: str, query: str) -> str | None:
        found: str | None = self.ask(node, "GET", f"/queries/{query}").json()["frontier"]
        return found

    def await_final(self, node: str, query: str, upto: int) -> None:
        """The site's frontier may end before the next promise."""
        eventually(lambda: int(self.final(node, query) or -1) >= upto)
