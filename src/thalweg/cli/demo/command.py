"""The command itself: a service, the auction house, and a display of what goes on."""

from __future__ import annotations

import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from thalweg.cli.client import AsJson
from thalweg.cli.exits import CommandFailed, reporting
from thalweg.cli.output import emit_json, note, notes, stdout_console

if TYPE_CHECKING:
    from thalweg.engine.site import Site


def demo(
    seconds: Annotated[float, typer.Option(min=1, help="How long to run.")] = 60.0,
    keep: Annotated[bool, typer.Option("--keep", help="Go on until Ctrl-C.")] = False,
    master: Annotated[str, typer.Option(help="Spark master, or in-process for none.")] = "local[*]",
    rate: Annotated[float, typer.Option(help="Events per second of auction time.")] = 5.0,
    speed: Annotated[float, typer.Option(help="Seconds of auction time in a second.")] = 600.0,
    port: Annotated[int, typer.Option(help="Port of the service; 0 takes a free one.")] = 0,
    svg: Annotated[Path | None, typer.Option(help="Save a picture of the screen here.")] = None,
    nodes: Annotated[
        int, typer.Option(min=1, max=8, help="At so many sites, with queries across them.")
    ] = 1,
    as_json: AsJson = False,
) -> None:
    """Watch a few dozen standing queries over live auctions: ten hours of them in a minute.

    It runs a real service, so other commands work on it meanwhile (the screen shows its --url).
    """
    from thalweg.cli.demo.pulse import Pulse
    from thalweg.cli.demo.screen import Screen
    from thalweg.cli.demo.show import save_svg, show_lines, show_live
    from thalweg.cli.demo.summary import print_summary, summary_data

    if nodes > 1:
        with reporting():
            _across(
                nodes, master, port, _script(rate, speed), None if keep else seconds, svg, as_json
            )
        return
    with reporting(), _serving(master, port) as (site, url):
        with site.gate.between_ticks():  # so that nobody waits for a tick with each query
            script = site.execute(_script(rate, speed), name="auctions.cql")
            pulse = Pulse(site)
            for query in script.queries:
                pulse.watch(query.name)
        runs_on = "without Spark" if master == "in-process" else f"on Spark {master}"
        screen = Screen(url, None if keep else seconds, runs_on)
        until = None if keep else time.monotonic() + seconds

        def over() -> bool:
            return until is not None and time.monotonic() >= until

        try:
            if notes.is_terminal:
                picture = show_live(pulse, screen, notes, over)
            else:
                note(f"the demo's service is at {url}")
                picture = show_lines(pulse, notes, over)
        except KeyboardInterrupt:
            picture = pulse.picture()
        if svg is not None:
            save_svg(picture, screen, svg)
        if as_json:
            emit_json(summary_data(picture))
        else:
            print_summary(picture, stdout_console())


def _across(
    nodes: int,
    master: str,
    port: int,
    script: str,
    seconds: float | None,
    svg: Path | None,
    as_json: bool,
) -> None:
    """The same at several sites: a process for each."""
    from thalweg.cli.demo import across
    from thalweg.cli.network.picture import map_svg

    each = "local[1]" if master == "local[*]" else master
    with across.network(nodes, each, port) as running:
        url = running[0].url
        across.define(script, running)
        note(f"{nodes} sites; each answers for all: --url {url}")
        until = None if seconds is None else time.monotonic() + seconds
        try:
            seen = across.show(url, notes, lambda: until is not None and time.monotonic() >= until)
        except KeyboardInterrupt:
            seen = across.look(url)
    if svg is not None:
        svg.parent.mkdir(parents=True, exist_ok=True)
        svg.write_text(map_svg(seen))
    if as_json:
        emit_json(seen)
    else:
        stdout_console().print(across.rendered(seen))


def _script(rate: float, speed: float) -> str:
    text = files("thalweg.cli.demo").joinpath("auctions.cql").read_text()
    return text.replace("{rate}", str(rate)).replace("{speed}", str(speed))


@contextmanager
def _serving(master: str, port: int) -> Iterator[tuple[Site, str]]:
    """A service with a data directory that goes with it."""
    from thalweg.api.server import Server, listen_on
    from thalweg.cql import compile_script
    from thalweg.engine.paths import AllowedFolders
    from thalweg.engine.site import open_site
    from thalweg.engine.site.settings import SiteSettings

    folder = Path(tempfile.mkdtemp(prefix="thalweg-demo-"))
    listener = listen_on("127.0.0.1", port)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    site, server, thread = None, None, None
    try:
        with notes.status("starting Spark, which takes a few seconds"):
            settings = SiteSettings(allowed=AllowedFolders((Path.cwd(),)))
            site = open_site(folder, compile_script, master=master, settings=settings)
        # Spark's own handler would cancel the tick that runs.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        server = Server(site)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        yield site, url
    except RuntimeError as error:
        raise CommandFailed(str(error)) from None
    finally:
        if server is not None and thread is not None:
            server.should_exit = True
            thread.join(10)
        if site is not None:
            site.close()
        shutil.rmtree(folder, ignore_errors=True)
