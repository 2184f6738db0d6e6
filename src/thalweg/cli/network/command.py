"""thalweg network up, down, ps, map."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

from thalweg.cli.client import DEFAULT_URL, NETWORK_FOLDER, AsJson, Service, Url
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.move import moves
from thalweg.cli.network.certificates import certificates
from thalweg.cli.network.coordinators import coordinators
from thalweg.cli.network.drawing import map_text
from thalweg.cli.network.fidelity import fidelity
from thalweg.cli.network.file import TREES, nodes_of
from thalweg.cli.network.leaving import drain, forget, leave
from thalweg.cli.network.mode import (
    CopiesOption,
    Mode,
    ModeOption,
    RoomOption,
    SheddingOption,
)
from thalweg.cli.network.partners import partners as show_partners
from thalweg.cli.network.picture import map_svg
from thalweg.cli.network.replanning import check, replan, replans
from thalweg.cli.network.running import Running, is_running, load, meet, save, start, stop
from thalweg.cli.network.top import top
from thalweg.cli.network.trees import trees as show_trees
from thalweg.cli.network.users import user
from thalweg.cli.network.wanting import (
    FIRST_PORT,
    as_before,
    as_kept,
    names_of,
    remember,
    remembered,
    restore,
    with_port,
)
from thalweg.cli.output import emit, emit_json, emit_lines, emit_table, note, notes
from thalweg.runtime.network.mirrors.lags import with_lags
from thalweg.runtime.network.moves.controllers import Controller
from thalweg.runtime.network.placing.strategies import PlanningBy

network = typer.Typer(
    name="network", help="Many nodes as one system.", no_args_is_help=True, add_completion=False
)
network.command()(certificates)
network.add_typer(user)

Folder = Annotated[
    Path, typer.Option("--data-dir", help="Where the nodes of this machine have their data.")
]
DEFAULT_FOLDER = Path(NETWORK_FOLDER)
AT_ONCE = 4  # nodes that start beside each other


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
        str | None,
        typer.Option(
            help="Spark for each node; in-process for ticks without Spark, usual for peers."
        ),
    ] = None,
    mode: ModeOption = Mode.homes,
    copies: CopiesOption = None,
    room: RoomOption = None,
    shedding: SheddingOption = None,
    port: Annotated[
        int,
        typer.Option(
            envvar="THALWEG_PORT", help="Of the first node's service; 0 takes a free one."
        ),
    ] = FIRST_PORT,
    trees: Annotated[
        str | None,
        typer.Option(help="Streams travel along trees: nearest, greedy or adaptive."),
    ] = None,
    round_s: Annotated[
        float | None,
        typer.Option(min=0.5, help="With --trees adaptive: between rounds of adaptation."),
    ] = None,
    controller: Annotated[
        Controller | None,
        typer.Option(
            help="Who moves fragments: manager (at the first node), partners (those with little to "
            "do ask those with much), or replanning. A file says it itself."
        ),
    ] = None,
    partners: Annotated[
        str | None,
        typer.Option(help="With --controller partners: round_s=5,kappa=1.2,alpha=0.9,max1=5."),
    ] = None,
    planning: Annotated[
        PlanningBy,
        typer.Option(
            help="Who decides where strategies put queries: the node that is asked, or nodes "
            "together (protocol)."
        ),
    ] = PlanningBy.node,
    as_json: AsJson = False,
) -> None:
    """Start a network on this machine: a process for each node, on free ports of loopback. It goes
    on where it was left; `thalweg network down` stops it."""
    with reporting():
        if trees is not None and trees not in TREES:
            raise CommandFailed(f"--trees {trees}: there are {', '.join(TREES)}", BAD_INPUT)
        folder.mkdir(parents=True, exist_ok=True)
        running = [n for n in load(folder) if is_running(n)]
        there = {n.name for n in running}
        given = {
            "master": master,
            "mode": mode.value if mode is not Mode.homes else None,
            "copies": copies,
            "room": room,
            "shedding": shedding,
            "trees": trees,
            "round_s": round_s,
            "planning": planning.value if planning is not PlanningBy.node else None,
        }
        if file is not None:
            _check_file_alone(file, given, controller, partners, nodes)
            wanted = with_port(nodes_of(file), port)
        else:
            known = remembered(folder)
            names = names_of(nodes, [w.name for w in known])
            wanted = as_before(names, known, port, given, controller, partners)
        missing = [w for w in wanted if w.name not in there]
        if not missing:
            raise CommandFailed(
                f"these nodes run in {folder} already: `thalweg network map` shows them, "
                "`thalweg network down` stops them",
                BAD_INPUT,
            )
        before = as_kept(folder)
        remember(folder, wanted)
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
                meet(running + started)
        except BaseException:
            stop(started)
            restore(folder, before)
            raise
        order = {w.name: place for place, w in enumerate(remembered(folder))}
        running = sorted(running + started, key=lambda n: order.get(n.name, len(order)))
        save(folder, running)
        if as_json:
            emit_lines([{"name": n.name, "url": n.url, "pid": n.pid} for n in running])
            return
        _show(running[0].url)
        note(f"[green]✓[/] {len(running)} nodes; each answers for all: --url {running[0].url}")
        note("try `thalweg submit`, `thalweg network map`, and stop with `thalweg network down`")


def _check_file_alone(file: Path, given: Mapping[str, Any], *more: object) -> None:
    """Raises CommandFailed where options would say what stands in the file."""
    said = [f"--{key.replace('_', '-')}" for key, value in given.items() if value is not None]
    names = "--controller", "--partners", "--nodes"
    said += [name for name, value in zip(names, more, strict=True) if value is not None]
    if said:
        raise CommandFailed(f"{said[0]} is for networks without a file: {file} says it", BAD_INPUT)


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
network.command()(drain)
network.command()(moves)
network.command("partners")(show_partners)
network.command()(replan)
network.command()(replans)
network.command()(check)
network.command()(top)
network.command("trees")(show_trees)
network.command()(fidelity)
network.command()(coordinators)


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
        are_peers = any(node.get("role") for node in found)
        columns = [
            ("NODE", "left"),
            ("SITE", "left"),
            ("STATE", "left"),
            ("STREAMS", "right"),
            ("QUERIES", "right"),
            *([("OWNS", "right"), ("STORES", "right")] if are_peers else []),
            ("SOURCE OF" if are_peers else "READS", "left"),
            ("SERVICE", "left"),
        ]
        emit_table(columns, map(_row_of_peer if are_peers else _row, found), empty="no nodes")


def _row_of_peer(node: dict[str, Any]) -> tuple[object, ...]:
    """With the share of all values that it has, and tuples that it stores."""
    *head, _, service = _row(node)
    role = node["role"]
    if role is None:
        return (*head, "", "", "", service)
    state = head[2] if role["is_in_ring"] else "joins the ring"
    stored = f"{role['stored']:,}" + (f" (shed {role['shed']:,})" if role["shed"] else "")
    told = (f"{100 * role['owned']:.1f} %", stored, ", ".join(role["sources"]))
    return (*head[:2], state, *head[3:], *told, service)


def _row(node: dict[str, Any]) -> tuple[object, ...]:
    kinds = [d["kind"] for d in node["defines"]]
    reads = sorted({link["from"] for link in node["links"]})
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
