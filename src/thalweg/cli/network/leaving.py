"""thalweg network leave and forget: nodes that go."""

from __future__ import annotations

from typing import Annotated

import typer

from thalweg.cli.client import DEFAULT_URL, Service, Url
from thalweg.cli.exits import reporting
from thalweg.cli.output import note

Name = Annotated[str, typer.Argument(help="The node.")]


def leave(node: Name, url: Url = DEFAULT_URL) -> None:
    """Take a node out of the network and stop it; what it computes for others goes to those who
    read it. Refused while it has streams or queries, or computes what can't be rebuilt."""
    with reporting(), Service(url) as service:
        service.request("POST", "/network/leave", headers={"thalweg-at": node})
        note(f"[green]✓[/] {node} has left")


def forget(node: Name, url: Url = DEFAULT_URL) -> None:
    """Forget a node that is gone for good, with all that it had. Refused while it runs."""
    with reporting(), Service(url) as service:
        service.request("POST", "/network/forget", json={"node": node})
        note(f"[green]✓[/] {node} is forgotten: its streams and queries are gone, their names free")
