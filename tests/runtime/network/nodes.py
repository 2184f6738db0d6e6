"""Nodes in this process, with real sockets between them and a directory that all share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from msgspec import structs
from tests.runtime.driver.local_post import Exchange
from tests.runtime.links import Mesh

from thalweg.adapt.handover import Handover, Settings
from thalweg.adapt.partners.settings import Settings as Partners
from thalweg.adapt.partners.site import SitePartners
from thalweg.adapt.swap.protocol import Swap
from thalweg.api.server import Server, listen_on
from thalweg.cql import compile_placed
from thalweg.engine.shared.state.names import ENGINE_FED, LABELLED
from thalweg.engine.shared.tick.shaping.policy import Policy
from thalweg.engine.site import IN_PROCESS, WrongUse, open_site
from thalweg.engine.site.publications import MIRRORS
from thalweg.engine.site.settings import SiteSettings
from thalweg.engine.wrappers.interface import Wrapper
from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.protocol import NodeProtocol
from thalweg.overlay.stack import Stack
from thalweg.runtime.data.client import DataClient
from thalweg.runtime.data.server import DataServer
from thalweg.runtime.driver.driver import Driver
from thalweg.runtime.network.components import Components, Habits
from thalweg.runtime.network.computing import Computing
from thalweg.runtime.network.directory import Defined, NodeInfo
from thalweg.runtime.network.labels.labelling import Labelling
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.moves.moving import LiveMoves
from thalweg.runtime.network.node import Node
from thalweg.runtime.network.placing.planning import Limits
from thalweg.runtime.network.protocols.deciding import Deciding
from thalweg.runtime.network.protocols.stack import PlacingSettings, placing_protocols
from thalweg.runtime.swap.definitions import is_joined
from thalweg.runtime.swap.joins import LIVE, Joins

QUICK = Settings(again_us=100_000)


@dataclass
class Shared:
    """What all nodes know, at once."""

    infos: dict[str, NodeInfo] = field(default_factory=dict)
    entries: dict[str, Defined] = field(default_factory=dict)
    listeners: list[Callable[[str], None]] = field(default_factory=list)
    exchange: Any = field(default_factory=Exchange)
    down: set[str] = field(default_factory=set)  # those that do not answer, as far as is known
    mesh: Mesh | None = None  # of links between publishers and readers, which can be cut


@dataclass
class SharedDirectory:
    shared: Shared
    me: NodeInfo

    def nodes(self) -> list[NodeInfo]:
        return sorted(map(self._reached, self.shared.infos.values()), key=lambda n: n.name)

    def _reached(self, info: NodeInfo) -> NodeInfo:
        """As this node reaches it."""
        if self.shared.mesh is None or info.name == self.me.name:
            return info
        link = self.shared.mesh.relay(self.me.name, info.data)
        return structs.replace(info, data=link.address)

    def is_up(self, node: str) -> bool:
        return node in self.shared.infos and node not in self.shared.down

    def defined(self) -> Mapping[str, Defined]:
        return dict(self.shared.entries)

    def change(self, had: Iterable[tuple[str, str, str]], gone: Iterable[str] = ()) -> None:
        for name in gone:
            for key, entry in list(self.shared.entries.items()):
                is_own = entry.node == self.me.name
                if is_own and entry.name_there.lower() == name.lower():
                    del self.shared.entries[key]
        for name, kind, text in had:
            self.shared.entries[name.lower()] = Defined(name, kind, text, self.me.name)

    def forget(self, node: str) -> None:
        raise WrongUse(f"{node} runs")

    def leave(self) -> None:
        self.shared.infos.pop(self.me.name)
        for listener in self.shared.listeners:
            listener(self.me.name)

    def on_gone(self, listener: Callable[[str], None]) -> None:
        self.shared.listeners.append(listener)


class LiveNode:
    def __init__(
        self,
        name: str,
        folder: Path,
        shared: Shared,
        limits: Limits | None = None,
        engine: Callable[[Path], Wrapper] | None = None,
        address: str | None = None,
        partners: Partners | None = None,
        placing: PlacingSettings | None = None,
        shapes: Policy | None = None,
    ) -> None:
        """`engine` opens another one than the site's; `address` is not the name, if it is given.
        With `partners` its protocol runs, and who wants them observed does so; with `placing`,
        nodes place queries together. `shapes` decides what joins keep beside windows."""
        self.address, self.partners = address or name, partners
        self.name, self.folder, self.shared, self.limits = name, folder / name, shared, limits
        self.engine, self.placing, self.shapes = engine, placing, shapes
        self.open()

    def open(self) -> None:
        known = self.shared.infos.get(self.name)
        port = 0 if known is None else int(known.http.rpartition(":")[2])
        listener = listen_on("127.0.0.1", port)
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.data = DataServer("127.0.0.1:0" if known is None else known.data)
        wrapper = None if self.engine is None else self.engine(self.folder / "engine")
        computing, labelling = Computing(wrapper), Labelling()
        info = NodeInfo(self.name, self.address, self.url, self.data.address)
        if wrapper is not None:
            info = structs.replace(info, engine=wrapper.name)
        self.shared.infos[self.name] = info
        directory = SharedDirectory(self.shared, info)
        mirrors = Mirrors(directory, DataClient)
        post = self.shared.exchange.post(self.address)
        self.driver = Driver(self._stack, post=post, folder=self.folder)
        joins = Joins(self.driver, directory)
        self.driver.start()
        site = open_site(
            self.folder,
            compile_placed,
            master=IN_PROCESS,
            settings=SiteSettings(durable=False, tick_interval_s=0.01),
            schemes={
                MIRRORS: lambda s: joins.source(s) if is_joined(s) else mirrors.source(s),
                ENGINE_FED: computing.source,
                LABELLED: labelling.source,
            },
        )
        if self.shapes is not None:
            site.engine.ticks.shaping.policy = self.shapes
        moving, deciding = LiveMoves(self.driver, directory), None
        if self.placing is not None:
            others = tuple(n for n in self.shared.infos if n != self.name)
            if others:
                self.driver.call("membership", Join(others))
            deciding = Deciding(self.driver, directory, look_every_s=0.2)
        components = Components(computing, labelling, moving=moving, joins=joins, deciding=deciding)
        habits = Habits(self.limits or Limits())
        self.node = Node(site, directory, mirrors, self.data, components, habits)
        ready = threading.Event()
        self._server = Server(site, ready.set, node=self.node)
        self._thread = threading.Thread(target=self._server.run, args=([listener],))
        self._thread.start()
        assert ready.wait(10)
        self.http = httpx.Client(base_url=self.url, timeout=300, trust_env=False)

    def _stack(self) -> Stack:
        known: list[NodeProtocol] = [Handover(QUICK), Swap(LIVE)]
        if self.partners is not None:
            known.append(SitePartners(self.partners))
        if self.placing is None:
            return Stack(known)
        membership = Membership()  # what builds on it hears of the others after it
        return Stack([membership, *known, *placing_protocols(membership, self.placing)])

    def close(self) -> None:
        self.http.close()
        self._server.should_exit = True
        self._thread.join(15)
        self.driver.close()
        self.node.close()

    # --- as a user does it

    def cql(self, text: str, strategy: str = "local", **more: str) -> dict[str, Any]:
        headers = {"thalweg-strategy": strategy, **more}
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
