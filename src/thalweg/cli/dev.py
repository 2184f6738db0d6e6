"""thalweg dev: the service on this machine."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.client import AsJson
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.output import emit, emit_json, note, notes
from thalweg.cli.stopping import interrupt, stop_within
from thalweg.cli.trusting import UsersOption, access_of


def dev(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(envvar="THALWEG_PORT", help="Port to listen on; 0 takes a free one.")
    ] = 7341,
    data_dir: Annotated[
        Path, typer.Option(help="Catalog, state, results; it goes on where it was left.")
    ] = Path("thalweg-data"),
    store: Annotated[
        str,
        typer.Option(help="Keep all of it in an object store, as s3://BUCKET/FOLDER."),
    ] = "",
    master: Annotated[str, typer.Option(help="Spark master, or in-process for none.")] = "local[*]",
    tick_rows: Annotated[int, typer.Option(min=1, help="Tuples to a tick at most.")] = 500_000,
    tick_interval_ms: Annotated[
        int, typer.Option(min=0, help="Between ticks, where many follow each other.")
    ] = 50,
    retained_ticks: Annotated[
        int, typer.Option(min=1, help="For so many ticks readers can come back for results.")
    ] = 5_000,
    largest_backlog: Annotated[
        int, typer.Option(min=1, help="Tuples that may wait before sources are slowed.")
    ] = 2_000_000,
    allow: Annotated[
        list[Path],
        typer.Option(help="A folder that sources and sinks may use, beside the current one."),
    ] = [],  # noqa: B006
    users: UsersOption = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Run in the background; return once it answers.")
    ] = False,
    stop: Annotated[
        bool, typer.Option("--stop", help="Stop the one that has this data directory.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run the service until Ctrl-C; prints its URL once it answers."""
    if stop or detach:
        from thalweg.cli.detached import start_detached, stop_detached

        with reporting():
            if stop:
                stop_detached(data_dir)
            else:
                start_detached(data_dir, as_json=as_json)
        return
    from thalweg.api.server import AddressInUse, listen_on, serve
    from thalweg.cql import compile_script
    from thalweg.engine.paths import AllowedFolders
    from thalweg.engine.shared.state.store import StoreError
    from thalweg.engine.site import SiteError, WrongUse, open_site
    from thalweg.engine.site.settings import SiteSettings

    settings = SiteSettings(
        tick_rows=tick_rows,
        tick_interval_s=tick_interval_ms / 1000,
        retained_ticks=retained_ticks,
        largest_backlog=largest_backlog,
        allowed=AllowedFolders((Path.cwd(), *allow)),
        store=store,
    )
    with reporting():
        access = access_of(users)
        try:
            listener = listen_on(host, port)
        except AddressInUse as error:
            raise CommandFailed(_who_has(data_dir) or str(error), BAD_INPUT) from None
        signal.signal(signal.SIGTERM, interrupt)
        log_to_stderr()
        url = f"http://{host}:{listener.getsockname()[1]}"
        site = None
        try:
            with notes.status(f"opening {data_dir} on {master}"):
                site = open_site(data_dir, compile_script, master=master, settings=settings)
            # Spark's own handler would cancel the tick that runs.
            signal.signal(signal.SIGINT, interrupt)
            serve(
                site,
                listener,
                lambda: _announce(url, data_dir, as_json),
                stop_within,
                access=access,
            )
        except KeyboardInterrupt:
            pass
        except WrongUse as error:
            raise CommandFailed(str(error), BAD_INPUT) from None
        except (SiteError, StoreError, RuntimeError) as error:
            raise CommandFailed(str(error)) from None
        finally:
            if site is not None:
                note("stopping: the tick that runs is finished first")
                site.close()


def _who_has(data_dir: Path) -> str | None:
    """Who starts the same service twice has no need of another port."""
    from thalweg.cli.detached import stop_command, user_of

    process = user_of(data_dir)
    if process is None:
        return None
    return f"it runs already, as process {process}: `{stop_command(data_dir)}` stops it"


def _announce(url: str, data_dir: Path, as_json: bool) -> None:
    if as_json:
        emit_json({"url": url, "data_dir": str(data_dir.resolve())})
    else:
        emit(url)
    note(f"[bold]Thalweg[/] is at {url} (API: {url}/docs, data: {data_dir}). Ctrl-C stops it.")


def log_to_stderr() -> None:
    """Warnings and errors of the site, a line each."""
    import logging

    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
