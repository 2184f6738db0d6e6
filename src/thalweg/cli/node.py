"""thalweg node: one node of a network."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.client import AsJson
from thalweg.cli.dev import interrupt, log_to_stderr
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.output import emit, emit_json, note, notes
from thalweg.cli.stopping import stop_within
from thalweg.cli.trusting import CertificatesOption, UsersOption, access_of, credentials_of


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
    certificates: CertificatesOption = None,
    users: UsersOption = None,
    join: Annotated[
        list[str], typer.Option(help="HOST:PORT of a node of the network; may be repeated.")
    ] = [],  # noqa: B006
    network: Annotated[str, typer.Option(help="The network's name.")] = "thalweg",
    master: Annotated[
        str, typer.Option(help="Spark master; in-process runs ticks without Spark.")
    ] = "local[1]",
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
    cpu: Annotated[
        float | None, typer.Option(min=0, help="Cores that placed queries may take; none: any.")
    ] = None,
    out_bps: Annotated[
        float | None, typer.Option(min=0, help="Bits per second that may leave it for them.")
    ] = None,
    in_bps: Annotated[
        float | None, typer.Option(min=0, help="Bits per second that may come in for them.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a node until Ctrl-C: it finds the others, shares a catalogue with them, and answers for
    the whole network."""
    from thalweg.api.server import AddressInUse, listen_on, serve
    from thalweg.engine.paths import AllowedFolders
    from thalweg.engine.shared.state.store import StoreError
    from thalweg.engine.site import SiteError
    from thalweg.engine.site.settings import SiteSettings
    from thalweg.runtime.network.node import Limits
    from thalweg.runtime.network.opening import NodeSettings, keep_ports, kept_ports, open_node
    from thalweg.runtime.transport.addresses import BadAddress, address_of
    from thalweg.runtime.trust import TrustError

    with reporting():
        credentials, access = credentials_of(certificates, name), access_of(users)
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
            credentials=credentials,
            join=tuple(join),
            master=master,
            strategy=_strategy(strategy),
            gone_after_s=gone_after_s,
            limits=Limits(cpu, out_bps, in_bps),
            settings=SiteSettings(
                tick_interval_s=tick_interval_ms / 1000,
                retained_ticks=retained_ticks,
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
            with notes.status(f"opening {data_dir} on {master}"):
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
        except (SiteError, StoreError, OSError, RuntimeError) as error:
            raise CommandFailed(str(error)) from None
        finally:
            if close is not None:
                note("stopping: the tick that runs is finished first")
                close()


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


def _strategy(name: str) -> str:
    from thalweg.runtime.network.placing import Strategy

    if name not in [s.value for s in Strategy]:
        known = ", ".join(Strategy)
        raise CommandFailed(f"there is no strategy {name}: there are {known}", BAD_INPUT)
    return name
