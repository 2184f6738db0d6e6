"""thalweg network up, down, ps, map."""

from __future__ import annotations

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Url
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.network.certificates import certificates
from thalweg.cli.network.drawing import map_text
from thalweg.cli.network.file import nodes_of
from thalweg.cli.network.leaving import forget, leave
from thalweg.cli.network.picture import map_svg
from thalweg.cli.network.replanning import check, replan
from thalweg.cli.network.running import Running, Wanted, is_running, load, save, start, stop
from thalweg.cli.network.users import user
from thalweg.cli.output import emit, emit_json, emit_lines, emit_table, note, notes
from thalweg.runtime.network.lags import with_lags

network = typer.Typer(
    name="network", help="Many nodes as one system.", no_args_is_help=True, add_completion=False
)
network.command()(certificates)
network.add_typer(user)

Folder = Annotated[
    Path, typer.Option("--data-dir", help="Where the nodes of this machine have their data.")
]
DEFAULT_FOLDER = Path("thalweg-network")
DEFAULT_NODES = 4
AT_ONCE = 4  # nodes that start beside each other
FIRST_PORT = 7341  # of the first node's service: where all commands look by themselves


@network.command()
def up(
    file: Annotated[
        Path | None, typer.Argument(help="A TOML file that names the nodes and their sites.")
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            min=1, max=64, help="How many: n1, n2, …; by default those that were there, or 4."
        ),
    ] = None,
    folder: Folder = DEFAULT_FOLDER,
    master: Annotated[
        str, typer.Option(help="Spark for each node; in-process for ticks without Spark.")
    ] = "local[1]",
    port: Annotated[
        int,
        typer.Option(
            envvar="THALWEG_PORT", help="Of the first node's service; 0 takes a free one."
        ),
    ] = FIRST_PORT,
    as_json: AsJson = False,
) -> None:
    """Start a network on this machine: a process for each node, on free ports of loopback. It goes
    on where it was left; `thalweg network down` stops it."""
    with reporting():
        folder.mkdir(parents=True, exist_ok=True)
        known = load(folder)
        running = [n for n in known if is_running(n)]
        there = {n.name for n in running}
        if file is not None:
            wanted = nodes_of(file)
        else:
            names = names_of(nodes, [n.name for n in known])
            wanted = [
                Wanted(name, master=master, port=0 if i else port) for i, name in enumerate(names)
            ]
        missing = [w for w in wanted if w.name not in there]
        if not missing:
            raise CommandFailed(
                f"these nodes run in {folder} already: `thalweg network map` shows them, "
                "`thalweg network down` stops them",
                BAD_INPUT,
            )
        started: list[Running] = []
        try:
            if not running:
                first, *missing = missing
                with notes.status(f"starting {first.name}"):
                    started.append(start(first, folder, ()))
            with notes.status(f"starting {', '.join(n.name for n in missing)}"):
                contact = (running + started)[0].address
                with ThreadPoolExecutor(AT_ONCE) as pool:
                    begun = [pool.submit(start, n, folder, (contact,)) for n in missing]
                    started += [b.result() for b in begun]
        except BaseException:
            stop(started)
            raise
        running = sorted(running + started, key=lambda n: (len(n.name), n.name))
        save(folder, running)
        if as_json:
            emit_lines([{"name": n.name, "url": n.url, "pid": n.pid} for n in running])
            return
        _show(running[0].url)
        note(f"[green]✓[/] {len(running)} nodes; each answers for all: --url {running[0].url}")
        note("try `thalweg submit`, `thalweg network map`, and stop with `thalweg network down`")


def names_of(wanted: int | None, known: list[str]) -> list[str]:
    """n1, n2, …: as many as are wanted. Where nobody says, those that the folder has; nodes that a
    file named need that file again."""
    if wanted is None and known:
        if all(re.fullmatch(r"n\d+", name) for name in known):
            return sorted(known, key=lambda name: int(name[1:]))
        raise CommandFailed(
            f"the nodes here are {', '.join(known)}: give the file that names them, "
            "or say --nodes for n1, n2, …",
            BAD_INPUT,
        )
    return [f"n{i + 1}" for i in range(wanted or DEFAULT_NODES)]


@network.command()
def down(
    folder: Folder = DEFAULT_FOLDER,
    purge: Annotated[bool, typer.Option("--purge", help="Delete all data as well.")] = False,
) -> None:
    """Stop the nodes that `network up` started; what they have is kept."""
    with reporting():
        nodes = load(folder)
        if not nodes:
            note(f"no network was started in {folder}: nothing to stop")
            return
        with notes.status(f"stopping {len(nodes)} nodes"):
            left = stop(nodes)
        if left:
            raise CommandFailed(f"{', '.join(left)} did not stop: see the logs in {folder}")
        if purge:
            shutil.rmtree(folder)
        note(f"[green]✓[/] {len(nodes)} nodes have stopped")


network.command()(leave)
network.command()(forget)
network.command()(replan)
network.command()(check)


@network.command("map")
def map_(
    url: Url = DEFAULT_URL,
    svg: Annotated[Path | None, typer.Option(help="Write it as a picture, to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw the network: sites, nodes, streams, queries, what flows between them, and how far that
    is behind."""
    with reporting():
        if svg is None:
            _show(url, as_json=as_json)
            return
        try:
            svg.write_text(map_svg(overview(url)))
        except OSError as error:
            raise CommandFailed(f"--svg {svg}: {error.strerror}", BAD_INPUT) from None
        note(f"[green]✓[/] {svg}")


@network.command()
def ps(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the nodes: where they are, what they have, whether they answer."""
    with reporting(), Service(url) as service:
        found = service.get("/network")["nodes"]
        if as_json:
            emit_lines(found)
            return
        columns = [
            ("NODE", "left"),
            ("SITE", "left"),
            ("STATE", "left"),
            ("STREAMS", "right"),
            ("QUERIES", "right"),
            ("READS", "left"),
            ("SERVICE", "left"),
        ]
        emit_table(columns, map(_row, found), empty="no nodes")


def _row(node: dict[str, object]) -> tuple[object, ...]:
    kinds = [d["kind"] for d in node["defines"]]  # type: ignore[attr-defined]
    reads = sorted({link["from"] for link in node["links"]})  # type: ignore[attr-defined]
    return (
        node["name"],
        node["site"],
        "up" if node["answers"] else "does not answer",
        str(sum(k in ("stream", "relation", "table") for k in kinds)),
        str(kinds.count("query")),
        ", ".join(reads),
        node["http"],
    )


def overview(url: str) -> dict[str, Any]:
    """The network, with how far readers are behind the homes of their streams."""
    with Service(url) as service:
        found: dict[str, Any] = service.get("/network")
        marks = {s["name"].lower(): s["watermark"] for s in service.get("/streams")}
    with_lags(found["nodes"], marks)
    return found


def _show(url: str, *, as_json: bool = False) -> None:
    found = overview(url)
    if as_json:
        emit_json(found)
    else:
        emit(map_text(found))
