"""Opens a node: its protocols, its publications, then its site, which goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from thalweg.cql import compile_placed
from thalweg.engine.site import IN_PROCESS, open_site
from thalweg.engine.site.publications import MIRRORS
from thalweg.engine.site.settings import SiteSettings
from thalweg.overlay.catalogue import Catalogue
from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.stack import Stack
from thalweg.overlay.succession import Settings, Succession
from thalweg.runtime.data.client import DataClient
from thalweg.runtime.data.server import DataServer
from thalweg.runtime.driver.driver import Driver
from thalweg.runtime.network.catalogued import Catalogued
from thalweg.runtime.network.directory import NodeInfo
from thalweg.runtime.network.mirrors import Mirrors
from thalweg.runtime.network.node import Limits, Node
from thalweg.runtime.network.succession import LiveSuccession
from thalweg.runtime.transport.addresses import address_of
from thalweg.runtime.transport.transport import Transport
from thalweg.runtime.trust import Credentials

_PORTS = "node.json"  # in the data directory: a node keeps its addresses


@dataclass(frozen=True, slots=True)
class NodeSettings:
    name: str
    folder: Path
    site: str = "here"
    network: str = "thalweg"
    host: str = "127.0.0.1"  # to listen on
    address: str | None = None  # the host that others are told, if it is another
    port: int = 0  # of its protocols; 0 takes a free one, and keeps it
    data_port: int = 0
    join: tuple[str, ...] = ()
    master: str = IN_PROCESS
    strategy: str = "local"
    gone_after_s: float = 10.0  # a node that is down has so long before its fragments go elsewhere
    limits: Limits = field(default_factory=Limits)
    settings: SiteSettings = field(default_factory=SiteSettings)
    credentials: Credentials | None = None  # without, only this machine is listened to


def kept_ports(folder: Path) -> dict[str, int]:
    """The ports that a node had before, so that others find it again after a restart."""
    try:
        found: dict[str, int] = json.loads((folder / _PORTS).read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return found


def keep_ports(folder: Path, **ports: int) -> None:
    (folder / _PORTS).write_text(json.dumps({**kept_ports(folder), **ports}))


def open_node(chosen: NodeSettings, http: str) -> tuple[Node, Callable[[], None]]:
    """The node, and how to close it; `http` is where its service will answer."""
    folder = chosen.folder
    folder.mkdir(parents=True, exist_ok=True)
    kept = kept_ports(folder)
    port = chosen.port or kept.get("protocols", 0)
    trust = chosen.credentials
    transport = Transport(
        address_of(chosen.host, port),
        network=chosen.network,
        advertised=chosen.address,
        tls=trust.tls() if trust is not None else None,
    )
    waits = Settings(silent_for_us=round(chosen.gone_after_s * 1e6))
    driver = Driver(lambda: _stack(waits), post=transport, folder=folder)
    driver.start()
    try:
        data_port = chosen.data_port or kept.get("data", 0)
        options = trust.for_flight_server() if trust is not None else {}
        data = DataServer(address_of(chosen.host, data_port), **options)
        data_address = address_of(chosen.address or chosen.host, data.port)
        me = NodeInfo(chosen.name, transport.address, http, data_address, chosen.site)
        if trust is not None:
            trust.check_names(chosen.name, transport.address)
        keep_ports(folder, protocols=transport.port, data=data.port)
        if chosen.join:
            driver.call("membership", Join(chosen.join))
        directory = Catalogued(driver, me)
        directory.announce()
        mirrors = Mirrors(
            directory,
            DataClient,
            lambda n: trust.for_flight_client(n.name) if trust is not None else {},
        )
        site = open_site(
            folder,
            compile_placed,
            master=chosen.master,
            settings=chosen.settings,
            schemes={MIRRORS: mirrors.source},
        )
    except BaseException:
        driver.close()
        raise
    succession = LiveSuccession(driver, directory)
    node = Node(site, directory, mirrors, data, chosen.limits, chosen.strategy, succession)

    def close() -> None:
        node.close()
        driver.leave()

    return node, close


def _stack(waits: Settings) -> Stack:
    membership = Membership()
    return Stack([membership, Catalogue(membership), Succession(membership, waits)])
