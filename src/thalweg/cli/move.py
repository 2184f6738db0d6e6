"""thalweg move, and thalweg network moves: fragments go elsewhere with their state."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Url
from thalweg.cli.exits import CommandFailed, reporting
from thalweg.cli.output import emit_json, emit_table, note, notes

_LOOK_EVERY_S = 0.2
_COLUMNS = (
    *((c, "left") for c in ("MOVE", "FRAGMENT", "FROM", "TO", "BY", "STATE")),
    *((c, "right") for c in ("SINCE", "MB", "SECONDS", "STOOD STILL")),
    *((c, "left") for c in ("ASKED BY", "WHY")),
)


def move(
    what: Annotated[
        str,
        typer.Argument(help="A fragment, as `explain --placed` names it, or a query: all of its."),
    ],
    to: Annotated[str, typer.Option(help="The node where it is to go on.")],
    buckets: Annotated[
        str | None,
        typer.Option(help="Of a query that is spread: only these, like 0-31."),
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            help="precopy copies state while the sender goes on; mslb while it stands still; ptlb "
            "copies none: both compute for a window; stop is the baseline; replay computes it anew "
            "from its inputs."
        ),
    ] = "precopy",
    why: Annotated[str, typer.Option(help="For `thalweg network moves`.")] = "",
    wait: Annotated[bool, typer.Option(help="Until it is there.")] = True,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Move what a node computes for others to another node, with its state, while it runs. No row
    is lost, and none comes twice."""
    with reporting(), Service(url) as service:
        given = {"what": what, "to": to, "by": by, "why": why, "buckets": buckets}
        found = service.request("POST", "/network/moves", json=given).json()
        if wait:
            found = _awaited(service, [m["move"] for m in found])
        if as_json:
            emit_json(found)
        else:
            for one in found:
                note(_told(one))
        failed = [m for m in found if m["state"] == "failed"]
        if failed:
            raise CommandFailed(f"{failed[0]['publication']} stays: {failed[0]['error']}")


def _awaited(service: Service, wanted: list[str]) -> list[dict[str, Any]]:
    with notes.status("it is on its way") as status:
        while True:
            moves = service.request("GET", "/network/moves").json()
            found = [m for m in moves if m["move"] in wanted]
            if found and all(m["is_over"] for m in found):
                return found
            sent, total = sum(m["sent"] for m in found), sum(m["total"] for m in found)
            status.update(f"{sent / 1e6:,.1f} of {total / 1e6:,.1f} MB")
            time.sleep(_LOOK_EVERY_S)


def _told(one: dict[str, Any]) -> str:
    what = f"fragment {one['fragment']} from {one['at']} to {one['to']}"
    if one["state"] == "failed":
        return f"{what}: stays ({one['error']})"
    if one["state"] != "done":
        return f"{what}: {one['state']}"
    since = "" if one["since"] is None else f" from {one['since_text']} on"
    still = one["stood_still_s"]
    paused = "" if still is None else f", stood still for {still:.2f} s"
    took = one["ended"] - one["begun"]
    return f"[green]✓[/] {what}{since}: {one['sent'] / 1e6:,.1f} MB in {took:.1f} s{paused}"


def moves(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """What was moved between nodes: from where to where, by whom, why, how much, how long."""
    with reporting(), Service(url) as service:
        found = service.request("GET", "/network/moves").json()
        if as_json:
            emit_json(found)
            return
        emit_table(_COLUMNS, [_row(m) for m in found], empty="nothing has moved")


def _row(one: dict[str, Any]) -> tuple[Any, ...]:
    took = (one["ended"] or time.time()) - one["begun"]
    still = one["stood_still_s"]
    return (
        *(one[key] for key in ("move", "fragment", "at", "to", "by", "state", "since_text")),
        f"{one['sent'] / 1e6:.1f}",
        f"{took:.1f}",
        None if still is None else f"{still:.2f}",
        one["asked_by"] or None,
        one["error"] or one["why"] or None,
    )
