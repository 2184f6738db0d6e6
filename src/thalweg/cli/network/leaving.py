"""thalweg network drain, leave and forget: nodes that are rid of what they do, and that go."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from thalweg.cli.client import DEFAULT_URL, Service, Url
from thalweg.cli.exits import CommandFailed, reporting
from thalweg.cli.output import note, notes

_LOOK_EVERY_S = 0.2
Name = Annotated[str, typer.Argument(help="The node.")]


def drain(
    node: Name,
    wait: Annotated[bool, typer.Option(help="Until all has gone.")] = True,
    url: Url = DEFAULT_URL,
) -> None:
    """Let the nodes that read what a node computes compute it themselves; the node stays. What
    can't be rebuilt goes with its state. It goes on if this command is interrupted."""
    with reporting(), Service(url) as service:
        found = _asked(service, "POST", node)
        if wait:
            _await(service, node, found)
            note(f"[green]✓[/] {node} computes nothing for others")
        elif found["state"] == "failed":
            raise CommandFailed(found["error"])
        else:
            told = progress_text(node, found)
            note(f"{told}; `thalweg network drain {node}` shows how far it is")


def leave(node: Name, url: Url = DEFAULT_URL) -> None:
    """Take a node out of the network and stop it; what it computes for others goes to those who
    read it, with its state where it can't be rebuilt. Refused while it has streams or queries."""
    with reporting(), Service(url) as service:
        _await(service, node, _asked(service, "POST", node, leaving=True))
        service.request("POST", "/network/leave", headers={"thalweg-at": node})
        note(f"[green]✓[/] {node} has left")


def forget(node: Name, url: Url = DEFAULT_URL) -> None:
    """Forget a node that is gone for good, with all that it had. Refused while it runs."""
    with reporting(), Service(url) as service:
        service.request("POST", "/network/forget", json={"node": node})
        note(f"[green]✓[/] {node} is forgotten: its streams and queries are gone, their names free")


def _asked(service: Service, method: str, node: str, **params: Any) -> dict[str, Any]:
    headers = {"thalweg-at": node}
    answer = service.request(method, "/network/drain", headers=headers, params=params)
    found: dict[str, Any] = answer.json()
    return found


def _await(service: Service, node: str, found: dict[str, Any]) -> None:
    """Raises CommandFailed if it does not come to an end."""
    with notes.status(progress_text(node, found)) as status:
        while found["state"] in ("moving", "waiting"):
            time.sleep(_LOOK_EVERY_S)
            found = _asked(service, "GET", node)
            status.update(progress_text(node, found))
    if found["state"] == "none":
        raise CommandFailed(f"{node} was started again meanwhile: drain it again")
    if found["state"] == "failed":
        raise CommandFailed(found["error"])


def progress_text(node: str, found: dict[str, Any]) -> str:
    left, total = found["left"], found["total"]
    gone = f"{total - len(left)} of {total} fragments have gone from {node}"
    if not left or found["state"] != "waiting":
        return gone
    more = f" and {len(left) - 1} more" if len(left) > 1 else ""
    first = f"{left[0]['reader']} goes over with {left[0]['fragment']}{more}"
    return f"{gone}; {first} when its streams have gone on"
