"""thalweg network trees: who has a stream from whom, and why."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Url
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.network.drawing import tree_lines
from thalweg.cli.output import emit, emit_json


def trees(
    why: Annotated[
        str | None, typer.Option(metavar="NODE", help="Say why this node hangs where it does.")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show the trees along which streams travel: their homes, and who has them from whom."""
    with reporting(), Service(url) as service:
        if why is not None:
            _check_known(service, why)
        query = "" if why is None else f"?why={quote(why)}"
        found = service.get(f"/network/trees{query}")
        if as_json:
            emit_json(found)
            return
        if not found:
            nothing = f"{why} has no stream along a tree, and passes none on"
            emit("no streams travel along trees" if why is None else nothing)
        for tree in found:
            emit(f"{tree['stream']} ({tree['choice']})")
            if why is None:
                for line in tree_lines(
                    tree["home"], {m["node"]: m["parent"] for m in tree["members"]}
                ):
                    emit(f"  {line}")
            for member in tree["members"]:
                if member["node"] == why:
                    emit(f"  {why} has it from {member['parent']}")
            for line in tree.get("why", ()):
                emit(f"  {line}")
            for member in tree["members"]:
                if member["wished"] != member["parent"] and why in (None, member["node"]):
                    emit(f"  {member['node']} is to hang under {member['wished']}")


def _check_known(service: Service, node: str) -> None:
    names = [known["name"] for known in service.get("/network/nodes")]
    if node not in names:
        raise CommandFailed(f"there is no node {node}: there are {', '.join(names)}", BAD_INPUT)
