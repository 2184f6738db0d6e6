"""thalweg network certificates: a private authority, and who the nodes are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.client import AsJson
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.output import emit, emit_lines, note


def certificates(
    folder: Annotated[Path, typer.Argument(help="Where the authority is, or is made.")],
    nodes: Annotated[
        list[str],
        typer.Option(
            "--node",
            help="NAME=HOST or NAME=HOST:PORT (of its protocols); may be repeated, also for "
            "further addresses of a node.",
        ),
    ],
    network: Annotated[str, typer.Option(help="The network's name, for a new authority.")] = (
        "thalweg"
    ),
    days: Annotated[int, typer.Option(min=1, help="For so long they are good.")] = 365,
    as_json: AsJson = False,
) -> None:
    """Make certificates for nodes, and at first the authority that signs them."""
    from thalweg.runtime.trust import TrustError, issue, make_authority

    with reporting():
        addresses = _addresses(nodes)
        try:
            if not (folder / "authority.key").exists():
                make_authority(folder, network)
                note(f"[green]✓[/] a new authority: {folder / 'authority.crt'}")
            made = {name: issue(folder, name, at, days=days) for name, at in addresses.items()}
        except (TrustError, OSError) as error:
            raise CommandFailed(str(error), BAD_INPUT) from None
        if as_json:
            rows = [{"node": n, "certificate": str(f), "at": addresses[n]} for n, f in made.items()]
            emit_lines(rows)
        else:
            for file in made.values():
                emit(str(file))
        for name in made:
            note(
                f"copy authority.crt, {name}.crt and {name}.key to node {name}, and start it with "
                f"--certificates THAT_FOLDER --users FILE"
            )
        note("users need authority.crt (THALWEG_CA); authority.key stays here, and nowhere else")


def _addresses(nodes: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for given in nodes:
        name, equals, address = given.partition("=")
        if not equals or not address:
            raise CommandFailed(f"--node is NAME=HOST or NAME=HOST:PORT, not {given}", BAD_INPUT)
        found.setdefault(name, []).append(address)
    return found
