"""thalweg node: one node of a network."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from thalweg.adapt.partners.settings import Settings as Partners
    from thalweg.runtime.network.opening import Keeper

from thalweg.cli.client import AsJson
from thalweg.cli.dev import log_to_stderr
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.network.mode import (
    CopiesOption,
    Mode,
    ModeOption,
    RoomOption,
    SheddingOption,
    usual_master,
)
from thalweg.cli.network.naming import check_node_name
from thalweg.cli.output import emit, emit_json, note, notes
from thalweg.cli.stopping import interrupt, stop_within
from thalweg.cli.trusting import CertificatesOption, UsersOption, access_of, credentials_of
from thalweg.runtime.network.moves.controllers import Conflict, Controller, controller_of
from thalweg.runtime.network.placing.strategies import PlanningBy


def node(
    name: Annotated[str, typer.Option(help="What the network calls it.")],
    data_dir: Annotated[Path, typer.Option(help="Its own; it goes on where it was left.")],
    site: Annotated[str, typer.Option(help="The place whose nodes are near each other.")] = "here",
    listen: Annotated[
        str, typer.Option(help="HOST, or HOST:PORT with the port of its protocols.")
    ] = "127.0.0.1",
    address: Annotated[
        str | None, typer.Option(help="Host by which others reach it, if it is another.")
    ] = None,
    port: Annotated[int, typer.Option(help="Of the service; 0 takes a free one.")] = 0,
    data_port: Annotated[int, typer.Option(help="Of its streams; 0 takes a free one.")] = 0,
    copy_at: Annotated[
        str | None,
        typer.Option(
            help="NODE=HOST:PORT of another node's streams: it keeps a second copy of all that "
            "this one has, and nothing is acknowledged before it has it."
        ),
    ] = None,
    certificates: CertificatesOption = None,
    users: UsersOption = None,
    join: Annotated[
        list[str], typer.Option(help="HOST:PORT of a node of the network; may be repeated.")
    ] = [],  # noqa: B006
    network: Annotated[str, typer.Option(help="The network's name.")] = "thalweg",
    mode: ModeOption = Mode.homes,
    copies: CopiesOption = None,
    room: RoomOption = None,
    shedding: SheddingOption = None,
    master: Annotated[
        str | None,
        typer.Option(
            help="Spark master; in-process runs ticks without Spark, which is usual for peers."
        ),
    ] = None,
    tick_interval_ms: Annotated[
        int, typer.Option(min=0, help="Between the starts of two ticks at least.")
    ] = 50,
    retained_ticks: Annotated[
        int, typer.Option(min=1, help="For so many ticks readers can come back for results.")
    ] = 5_000,
    gone_after_s: Annotated[
        float,
        typer.Option(min=0, help="A node that is down has so long; then its work is done here."),
    ] = 10.0,
    strategy: Annotated[
        str, typer.Option(help="Where queries run that are handed in here, as `submit --strategy`.")
    ] = "local",
    planning: Annotated[
        PlanningBy,
        typer.Option(
            help="Who decides where edge, edge+, in-network and cosmos put queries: the node that "
            "is asked (node), or nodes together (protocol). All nodes alike."
        ),
    ] = PlanningBy.node,
    cpu: Annotated[
        float | None, typer.Option(min=0, help="Cores that placed queries may take; none: any.")
    ] = None,
    out_bps: Annotated[
        float | None, typer.Option(min=0, help="Bits per second that may leave it for them.")
    ] = None,
    in_bps: Annotated[
        float | None, typer.Option(min=0, help="Bits per second that may come in for them.")
    ] = None,
    memory_bytes: Annotated[
        float | None,
        typer.Option(min=0, help="Memory that it may use; the balancer takes state from one full."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="shared; native: queries as plain Structured Streaming, the others elsewhere; "
            "or none: a broker, which only passes streams on."
        ),
    ] = "shared",
    trees: Annotated[
        str | None,
        typer.Option(
            help="Streams travel along trees: nearest, greedy or adaptive. All nodes alike."
        ),
    ] = None,
    round_s: Annotated[
        float, typer.Option(min=0.5, help="With --trees adaptive: between rounds of adaptation.")
    ] = 20.0,
    replan_every_s: Annotated[
        float | None,
        typer.Option(help="Look so often whether plans still fit, and move what does not."),
    ] = None,
    balance: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="This node moves fragments from the most loaded node to the least loaded, if it "
            "has by so much more than the mean (0.25: a quarter). One node of a network at most.",
        ),
    ] = None,
    copy_every_s: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Copy so often what others compute for this node and nobody could rebuild; "
            "without, never.",
        ),
    ] = None,
    move_bps: Annotated[
        float | None,
        typer.Option(help="Bits per second of state that moves away; without, no limit."),
    ] = None,
    balance_pause_s: Annotated[
        float, typer.Option(min=0, help="With --balance: between two moves.")
    ] = 60.0,
    balance_by: Annotated[
        str | None,
        typer.Option(
            help="With --balance: the only way of moves (precopy, mslb, ptlb or replay); without, "
            "each by the cheapest."
        ),
    ] = None,
    intermediates: Annotated[
        bool,
        typer.Option(help="Joins keep the results of parts of them where that saves work."),
    ] = True,
    controller: Annotated[
        str | None,
        typer.Option(
            help="Who moves fragments at this site: manager (--balance at one node), partners, or "
            "replanning (--replan-every-s). The others, where they are set up, only advise."
        ),
    ] = None,
    partners: Annotated[
        str | None,
        typer.Option(
            help="Nodes of the site with little to do ask those with much. All nodes alike, as "
            "round_s=5,kappa=1.2,alpha=0.9,max1=5, or some of it."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a node until Ctrl-C: it finds the others, shares a catalogue with them, and answers for
    the whole network."""
    from thalweg.adapt.balancing.fragments import WAYS as BALANCED_BY
    from thalweg.adapt.balancing.fragments import Settings as Balance
    from thalweg.api.server import AddressInUse, listen_on, serve
    from thalweg.engine.failures import Unavailable
    from thalweg.engine.paths import AllowedFolders
    from thalweg.engine.shared.state.store import StoreError
    from thalweg.engine.site import IN_PROCESS, SiteError
    from thalweg.engine.site.settings import SiteSettings
    from thalweg.plan.engines import ENGINES, NATIVE
    from thalweg.runtime.network.opening import (
        NodeSettings,
        fetch_ports,
        keep_ports,
        kept_ports,
        open_node,
    )
    from thalweg.runtime.network.placing.planning import Limits
    from thalweg.runtime.network.trees.choosing import CHOICES
    from thalweg.runtime.transport.addresses import BadAddress, address_of
    from thalweg.runtime.trust import TrustError

    with reporting():
        check_node_name(name)
        for other in join:
            _check_address("--join", other)
        if mode is not Mode.homes and (trees is not None or engine != "shared"):
            raise CommandFailed("--trees and --engine are for --mode homes", BAD_INPUT)
        if mode is not Mode.p2p and (room is not None or shedding is not None):
            raise CommandFailed("--room and --shedding are for --mode p2p", BAD_INPUT)
        if shedding is not None and room is None:
            raise CommandFailed("--shedding says what goes beyond --room: say that, too", BAD_INPUT)
        if mode is not Mode.homes and balance is not None:
            raise CommandFailed("--balance is for --mode homes", BAD_INPUT)
        if balance is None and balance_by is not None:
            raise CommandFailed("--balance-by says how --balance moves: say that, too", BAD_INPUT)
        ways = (
            BALANCED_BY
            if balance_by is None
            else (_one_of("--balance-by", balance_by, BALANCED_BY),)
        )
        balanced = None if balance is None else Balance(balance, balance_pause_s, ways=ways)
        decides, partnered = _controlled(
            controller, partners, is_manager=balance is not None, replans=replan_every_s is not None
        )
        if mode is not Mode.homes and (partnered is not None or decides is not None):
            raise CommandFailed("--controller and --partners are for --mode homes", BAD_INPUT)
        if planning is PlanningBy.protocol:
            _check_protocol(mode, is_managed=balance is not None, decides=decides)
        if engine == "none" and trees is None:
            raise CommandFailed(
                "a node with --engine none passes streams on along trees: say --trees, too",
                BAD_INPUT,
            )
        if engine == NATIVE and master == IN_PROCESS:
            raise CommandFailed("--engine native is Spark: --master in-process has none", BAD_INPUT)
        keeper = _keeper(copy_at, name)
        if keeper is not None and (mode is not Mode.homes or engine != "shared"):
            raise CommandFailed("--copy-at is for --mode homes and --engine shared", BAD_INPUT)
        credentials, access = credentials_of(certificates, name), access_of(users)
        if keeper is not None:
            try:
                fetch_ports(data_dir, keeper, name, certificates)
            except SiteError as error:
                raise CommandFailed(str(error)) from None
        host, own_port = _listening_at(listen, address)
        chosen = NodeSettings(
            name,
            data_dir,
            site,
            network,
            host,
            address,
            own_port,
            data_port,
            copy_at=keeper,
            credentials=credentials,
            join=tuple(join),
            master=(master or usual_master(mode)) if engine != "none" else IN_PROCESS,
            mode=mode.value,
            copies=1 if copies is None else copies,
            room=room,
            shedding=shedding,
            engine=_one_of("--engine", engine, ENGINES),
            trees=None if trees is None else _one_of("--trees", trees, tuple(CHOICES)),
            round_s=round_s,
            balance=balanced,
            partners=partnered,
            controller=decides,
            strategy=_strategy(strategy),
            planning=planning.value,
            replan_every_s=replan_every_s,
            gone_after_s=gone_after_s,
            move_bps=move_bps,
            copy_every_s=copy_every_s,
            limits=Limits(cpu, out_bps, in_bps, memory_bytes),
            settings=SiteSettings(
                tick_interval_s=tick_interval_ms / 1000,
                retained_ticks=retained_ticks,
                intermediates=intermediates,
                allowed=AllowedFolders((Path.cwd(),)),
            ),
        )
        try:
            is_guarded = credentials is not None and access is not None
            service_port = port or kept_ports(data_dir).get("http", 0)
            listener = listen_on(host, service_port, guarded=is_guarded)
        except AddressInUse as error:
            raise CommandFailed(str(error), BAD_INPUT) from None
        data_dir.mkdir(parents=True, exist_ok=True)
        http_port = listener.getsockname()[1]
        keep_ports(data_dir, http=http_port)
        scheme = "http" if credentials is None else "https"
        url = f"{scheme}://{address_of(address or host, http_port)}"
        signal.signal(signal.SIGTERM, interrupt)
        log_to_stderr()
        close = None
        try:
            with notes.status(f"opening {data_dir} on {chosen.master}"):
                opened, close = open_node(chosen, url)
            signal.signal(signal.SIGINT, interrupt)
            me = opened.directory.me

            def announce() -> None:
                if as_json:
                    emit_json({"name": name, "url": url, "address": me.address, "data": me.data})
                else:
                    emit(url)
                note(
                    f"node [bold]{name}[/] is at {url}; others join it with --join {me.address}. "
                    "Ctrl-C stops it."
                )

            serve(opened.site, listener, announce, stop_within, opened, access, credentials)
        except KeyboardInterrupt:
            pass
        except (BadAddress, TrustError) as error:
            raise CommandFailed(str(error), BAD_INPUT) from None
        except (SiteError, StoreError, Unavailable, OSError, RuntimeError) as error:
            raise CommandFailed(str(error)) from None
        finally:
            if close is not None:
                note("stopping: the tick that runs is finished first")
                close()


def _check_protocol(mode: Mode, *, is_managed: bool, decides: Controller | None) -> None:
    if mode is not Mode.homes:
        raise CommandFailed("--planning protocol is for --mode homes", BAD_INPUT)
    if is_managed or decides in (Controller.manager, Controller.partners):
        raise CommandFailed(
            "fragments are moved by one of them: a manager, partners, or --planning protocol",
            BAD_INPUT,
        )


def _controlled(
    wanted: str | None, partners: str | None, *, is_manager: bool, replans: bool
) -> tuple[Controller | None, Partners | None]:
    """Who moves fragments, and the numbers of partners, where they run."""
    from thalweg.runtime.network.moves.partnering import parse_partners

    set_up = {
        Controller.manager: is_manager,
        Controller.partners: partners is not None,
        Controller.replanning: replans,
    }
    try:
        decides = controller_of(wanted, [c for c, is_so in set_up.items() if is_so])
    except Conflict as error:
        raise CommandFailed(f"--controller: {error}", BAD_INPUT) from None
    if partners is None and decides is not Controller.partners:
        return decides, None
    try:
        return decides, parse_partners(partners or "")
    except ValueError as error:
        raise CommandFailed(f"--partners: {error}", BAD_INPUT) from None


def _listening_at(listen: str, address: str | None) -> tuple[str, int]:
    """Host and port of the protocols (0: any)."""
    from thalweg.runtime.transport.addresses import BadAddress, host_and_port

    try:
        host, port = host_and_port(listen if ":" in listen else f"{listen}:0")
    except BadAddress as error:
        raise CommandFailed(f"--listen: {error}", BAD_INPUT) from None
    if address is None and host in ("0.0.0.0", "::"):
        raise CommandFailed(
            f"{host} is all addresses of this machine: say with --address HOST by which one "
            "others reach it",
            BAD_INPUT,
        )
    return host, port


def _keeper(asked: str | None, me: str) -> Keeper | None:
    from thalweg.runtime.network.opening import Keeper
    from thalweg.runtime.transport.addresses import BadAddress, host_and_port

    if asked is None:
        return None
    name, _, address = asked.partition("=")
    try:
        host_and_port(address)
    except BadAddress as error:
        raise CommandFailed(f"--copy-at NODE=HOST:PORT: {error}", BAD_INPUT) from None
    if name == me:
        raise CommandFailed("--copy-at names another node: a copy here would go with it", BAD_INPUT)
    return Keeper(name, address)


def _one_of(option: str, wanted: str, known: tuple[str, ...]) -> str:
    if wanted not in known:
        raise CommandFailed(f"{option} {wanted}: there are {', '.join(known)}", BAD_INPUT)
    return wanted


def _strategy(name: str) -> str:
    from thalweg.runtime.network.placing.strategies import Strategy

    if name not in [s.value for s in Strategy]:
        known = ", ".join(Strategy)
        raise CommandFailed(f"there is no strategy {name}: there are {known}", BAD_INPUT)
    return name


def _check_address(option: str, address: str) -> None:
    """Raises CommandFailed."""
    from thalweg.runtime.transport.addresses import BadAddress, host_and_port

    try:
        host_and_port(address)
    except BadAddress as error:
        raise CommandFailed(f"{option}: {error}", BAD_INPUT) from None
