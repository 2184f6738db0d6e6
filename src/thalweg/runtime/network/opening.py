"""Opens a node: its protocols, its publications, then its site, which goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.adapt.balancing.fragments import Settings as Balance
from thalweg.adapt.handover import Handover
from thalweg.adapt.partners.settings import Settings as Partners
from thalweg.adapt.partners.site import SitePartners
from thalweg.adapt.swap.protocol import Swap
from thalweg.cql import compile_placed
from thalweg.engine.failures import Unavailable
from thalweg.engine.shared.state.names import ENGINE_FED, LABELLED
from thalweg.engine.shared.state.remote.node_objects import url_of
from thalweg.engine.shared.state.remote.objects import objects_at
from thalweg.engine.site import IN_PROCESS, Site, SiteError, open_site
from thalweg.engine.site.publications import MIRRORS
from thalweg.engine.site.settings import SiteSettings
from thalweg.engine.wrappers.opening import open_wrapper
from thalweg.overlay.catalogue import Catalogue
from thalweg.overlay.chord.messages import Create
from thalweg.overlay.membership import Join, Membership
from thalweg.overlay.protocol import NodeProtocol
from thalweg.overlay.stack import Stack
from thalweg.overlay.succession import Settings, Succession
from thalweg.overlay.trees.carried import Carried
from thalweg.overlay.trees.protocol import Trees
from thalweg.overlay.trees.settings import TreeTimes
from thalweg.plan.engines import NATIVE, NO_ENGINE, SHARED
from thalweg.runtime.data.client import DataClient
from thalweg.runtime.data.pace import Pace
from thalweg.runtime.data.server import DataServer
from thalweg.runtime.data.statements import PEERS
from thalweg.runtime.driver.driver import Driver
from thalweg.runtime.network.catalogued import Catalogued
from thalweg.runtime.network.components import Components, Habits
from thalweg.runtime.network.computing import Computing
from thalweg.runtime.network.directory import NodeInfo
from thalweg.runtime.network.fragments.succession import LiveSuccession
from thalweg.runtime.network.labels.labelling import Labelling
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.moves.controllers import Controller
from thalweg.runtime.network.moves.moving import LiveMoves
from thalweg.runtime.network.moves.partnering import Partnering
from thalweg.runtime.network.node import Node
from thalweg.runtime.network.placing.planning import Limits
from thalweg.runtime.network.placing.strategies import PlanningBy
from thalweg.runtime.network.trees.choosing import CHOICES, MOST_CHILDREN
from thalweg.runtime.network.trees.trees import ROUND_S, LiveTrees, tree_times
from thalweg.runtime.peers.feeding import JoinSource, StreamSource
from thalweg.runtime.peers.node import PeerNode
from thalweg.runtime.peers.peers import Peers
from thalweg.runtime.peers.site import PeerSite
from thalweg.runtime.peers.stack import peer_settings, peer_stack
from thalweg.runtime.swap.definitions import is_joined
from thalweg.runtime.swap.joins import LIVE, Joins
from thalweg.runtime.transport.addresses import address_of
from thalweg.runtime.transport.transport import Transport
from thalweg.runtime.trust import Credentials

if TYPE_CHECKING:
    from thalweg.runtime.network.protocols.deciding import Deciding

HOMES, P2P = "homes", "p2p"  # modes: streams have homes; or peers have all of them together
_MODE, _ENGINE, _NODE = "mode", "engine", "node"
_PORTS = "node.json"  # in the data directory: a node keeps its addresses


@dataclass(frozen=True, slots=True)
class Keeper:
    """A node that keeps a copy of another one: its name, and the address of its streams."""

    name: str
    address: str

    def url(self, owner: str, folder: str, trust: Path | None) -> str:
        return url_of(self.name, self.address, owner, folder, trust)


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
    planning: str = PlanningBy.node  # who decides, for strategies that nodes can carry out together
    replan_every_s: float | None = None  # how often it looks whether plans still fit; None: never
    gone_after_s: float = 10.0  # a node that is down has so long before its fragments go elsewhere
    limits: Limits = field(default_factory=Limits)
    settings: SiteSettings = field(default_factory=SiteSettings)
    mode: str = HOMES
    copies: int = 1  # of what a source retains, at other peers
    room: int | None = None  # tuples of a stream that a peer keeps; None: all
    shedding: str | None = None  # which of them go first, where there is no room
    engine: str = SHARED  # native: Structured Streaming; none: it only passes streams on
    trees: str | None = None  # who decides who has a stream from whom; None: all from its home
    round_s: float = ROUND_S  # of adaptation, where trees adapt in rounds
    balance: Balance | None = None  # this node moves others' fragments by these rules
    partners: Partners | None = None  # it has partners, with these numbers
    controller: Controller | None = None  # who moves fragments here; the others advise
    move_bps: float | None = None  # bits per second of state that moves away; None: no limit
    copy_every_s: float | None = None  # of what nobody could rebuild and others compute for it
    copy_at: Keeper | None = None  # who has a second copy of all that this node has
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


def fetch_ports(folder: Path, keeper: Keeper, owner: str, trust: Path | None) -> None:
    """A node that is started from its copy is found where it was. Raises SiteError."""
    if (folder / _PORTS).exists():
        return
    try:
        found = objects_at(keeper.url(owner, _NODE, trust)).get(_PORTS)
    except FileNotFoundError:
        return  # it begins
    except Unavailable as error:
        raise SiteError(f"{keeper.name}, which keeps a copy, does not answer: {error}") from None
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _PORTS).write_bytes(found)


def open_node(chosen: NodeSettings, http: str) -> tuple[Node, Callable[[], None]]:
    """The node, and how to close it; `http` is where its service will answer."""
    folder = chosen.folder
    folder.mkdir(parents=True, exist_ok=True)
    kept = kept_ports(folder)
    port = chosen.port or kept.get("protocols", 0)
    trust, keeper = chosen.credentials, chosen.copy_at
    trusted = None if trust is None else trust.authority.parent
    transport = Transport(
        address_of(chosen.host, port),
        network=chosen.network,
        advertised=chosen.address,
        tls=trust.tls() if trust is not None else None,
    )
    waits = Settings(silent_for_us=round(chosen.gone_after_s * 1e6))
    check_mode(folder, chosen.mode)
    check_engine(folder, chosen.engine)
    if chosen.mode == P2P:
        settings = peer_settings(chosen.copies, chosen.room, chosen.shedding)
        driver = Driver(lambda: peer_stack(settings), post=transport, folder=folder)
    else:
        times = None
        if chosen.trees is not None:
            times = tree_times(chosen.round_s if CHOICES[chosen.trees].in_rounds else None)
        copy = None if keeper is None else objects_at(keeper.url(chosen.name, "protocols", trusted))
        driver = Driver(
            lambda: _stack(waits, times, chosen), post=transport, folder=folder, copy=copy
        )
    peers = Peers(driver, chosen.copies, transport.counts) if chosen.mode == P2P else None
    driver.start()
    try:
        data_port = chosen.data_port or kept.get("data", 0)
        options = trust.for_flight_server() if trust is not None else {}
        listen = address_of(chosen.host, data_port)
        data = DataServer(listen, copies=folder / "copies", **options)
        if chosen.move_bps is not None:
            data.pace = Pace(chosen.move_bps / 8)
        data_address = address_of(chosen.address or chosen.host, data.port)
        me = NodeInfo(
            chosen.name, transport.address, http, data_address, chosen.site, chosen.engine
        )
        if trust is not None:
            trust.check_names(chosen.name, transport.address)
        keep_ports(folder, protocols=transport.port, data=data.port)
        if keeper is not None:
            ports = objects_at(keeper.url(chosen.name, _NODE, trusted))
            ports.put(_PORTS, folder / _PORTS)
            site = replace(chosen.settings, store=keeper.url(chosen.name, "site", trusted))
            chosen = replace(chosen, settings=site)
        if chosen.join:
            driver.call("membership", Join(chosen.join))
        directory = Catalogued(driver, me)
        directory.announce()
        if peers is not None and not chosen.join and len(directory.nodes()) == 1:
            driver.call("chord", Create())  # nobody else was ever heard of
        mirrors = Mirrors(
            directory,
            DataClient,
            lambda n: trust.for_flight_client(n.name) if trust is not None else {},
        )
        node = _node(chosen, directory, mirrors, data, driver, peers)
    except BaseException:
        driver.close()
        raise

    def close() -> None:
        node.close()
        driver.leave()

    return node, close


def _node(
    chosen: NodeSettings,
    directory: Catalogued,
    mirrors: Mirrors,
    data: DataServer,
    driver: Driver,
    peers: Peers | None,
) -> Node:
    if peers is None:
        # Another engine has the Spark; what the site passes on it passes on in this process.
        is_other = chosen.engine == NATIVE
        wrapper = open_wrapper(chosen.engine, chosen.folder, chosen.master) if is_other else None
        computing, labelling = Computing(wrapper), Labelling()
        joins = Joins(driver, directory)
        site: Site = open_site(
            chosen.folder,
            compile_placed,
            master=IN_PROCESS if is_other else chosen.master,
            settings=chosen.settings,
            schemes={
                MIRRORS: lambda s: joins.source(s) if is_joined(s) else mirrors.source(s),
                ENGINE_FED: computing.source,
                LABELLED: labelling.source,
            },
        )
        succession = LiveSuccession(driver, directory)
        moving = LiveMoves(driver, directory)
        trees = None
        if chosen.trees is not None:
            trees = LiveTrees(driver, directory, CHOICES[chosen.trees]())
        components = Components(
            computing,
            labelling,
            succession,
            moving,
            trees,
            joins,
            _deciding(chosen, driver, directory),
        )
        habits = Habits(
            chosen.limits,
            chosen.strategy,
            chosen.replan_every_s,
            _advises(chosen, Controller.replanning),
            chosen.copy_every_s,
        )
        node = Node(site, directory, mirrors, data, components, habits)
        if chosen.balance is not None:
            advises = _advises(chosen, Controller.manager)
            node.balancing.manage(chosen.balance, advises=advises)
        if chosen.partners is not None and chosen.engine == SHARED:
            advises = _advises(chosen, Controller.partners)
            node.partner_with(Partnering(node, driver, chosen.partners, advises=advises))
        return node
    joined = open_site(
        chosen.folder,
        compile_placed,
        master=chosen.master,
        settings=chosen.settings,
        schemes={
            MIRRORS: lambda stream: JoinSource(stream, peers),
            PEERS: lambda _: StreamSource(),
        },
        kind=PeerSite,
    )
    return PeerNode(joined, directory, mirrors, data, peers)


def _advises(chosen: NodeSettings, one: Controller) -> bool:
    return chosen.controller not in (None, one)


def check_mode(folder: Path, mode: str) -> None:
    """A data directory belongs to one mode. Raises SiteError."""
    noted = folder / _MODE
    if not noted.exists():
        if (folder / _PORTS).exists() and "protocols" in kept_ports(folder) and mode != HOMES:
            raise SiteError(f"{folder} has the data of a node with --mode {HOMES}")
        noted.write_text(mode)
    elif noted.read_text() != mode:
        raise SiteError(f"{folder} has the data of a node with --mode {noted.read_text()}")


def check_engine(folder: Path, engine: str) -> None:
    """What was computed by an engine goes on with it. Raises SiteError."""
    noted = folder / _ENGINE
    before = noted.read_text() if noted.exists() else None
    if NATIVE in (before, engine) and before not in (None, engine):
        raise SiteError(f"{folder} has the data of a node with --engine {before}")
    noted.write_text(engine)


def _decides(chosen: NodeSettings) -> bool:
    """A broker has no operators, and so does not stand where others would put some."""
    return chosen.planning == PlanningBy.protocol and chosen.engine != NO_ENGINE


def _deciding(chosen: NodeSettings, driver: Driver, directory: Catalogued) -> Deciding | None:
    if not _decides(chosen):
        return None
    # These protocols take half a second to import: nodes that plan by themselves do without.
    from thalweg.runtime.network.protocols.deciding import Deciding

    return Deciding(driver, directory)


def _stack(waits: Settings, trees: TreeTimes | None, chosen: NodeSettings) -> Stack:
    membership = Membership()
    catalogue, succession = Catalogue(membership), Succession(membership, waits)
    known: list[NodeProtocol] = [membership, catalogue, succession, Handover(), Swap(LIVE)]
    if chosen.partners is not None:
        known.append(SitePartners(chosen.partners))
    if _decides(chosen):
        from thalweg.runtime.network.protocols.stack import placing_protocols, placing_settings

        placing = placing_settings(chosen.limits.cpu, chosen.engine)
        known += placing_protocols(membership, placing)
    if trees is None:
        return Stack(known)
    streams = Carried()
    more = Trees(membership, streams, trees, most_children=MOST_CHILDREN)
    return Stack([*known, streams, more])
