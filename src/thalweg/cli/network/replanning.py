"""thalweg network replan and check: where placed queries run, and where they would."""

from __future__ import annotations

import os
import time
from typing import Annotated, Any

import typer

from thalweg.cli.client import AT, DEFAULT_URL, AsJson, Service, Url
from thalweg.cli.exits import CommandFailed, reporting
from thalweg.cli.output import emit, emit_json, note, notes

_LOOK_EVERY_S = 0.2


def replan(
    strategy: Annotated[
        str | None, typer.Option(help="As `submit --strategy`; the node's own without.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Place the queries of a node anew (`--at NODE` says which), as the network is measured now.
    Fragments go to their new nodes one by one, each from an instant on."""
    with reporting(), Service(url) as service:
        headers = {} if strategy is None else {"thalweg-strategy": strategy}
        given = {"dry_run": dry_run}
        found = service.request("POST", "/network/replan", json=given, headers=headers).json()
        if not dry_run:
            stays = found["stays"]
            with notes.status("fragments are on their way"):
                while not found["is_over"]:
                    time.sleep(_LOOK_EVERY_S)
                    found = service.request("GET", "/network/replan").json()
            found["stays"] = stays
        if as_json:
            emit_json(found)
        else:
            _show(found)
        failed = [c for c in found["changes"] if c["state"] == "failed"]
        if failed:
            raise CommandFailed(f"{len(failed)} of {len(found['changes'])} did not move")


def _show(found: dict[str, Any]) -> None:
    for change in found["changes"]:
        what = f"{change['query']}: fragment {change['fragment']} from {change['from']}"
        since = f" from {change['since_text']} on" if change["since_text"] is not None else ""
        why = f" ({change['error']})" if change["error"] else ""
        emit(f"{what} to {change['to']}{since}: {change['state']}{why}")
    for stays in found["stays"]:
        emit(f"{stays['query']}: stays at {stays['at']}, because {stays['why']}")
    if not found["changes"] and not found["stays"]:
        note("nothing changes")


def replans(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """When a node (`--at NODE`) found that plans do not fit any more, why, and what it did."""
    with reporting(), Service(url) as service:
        found = service.request("GET", "/network/replans").json()
        if as_json:
            emit_json(found)
            return
        for look in found:
            emit(f"{look['at']}  {look['strategy']}: {look['decision']}")
            for reason in look["reasons"]:
                emit(f"    because {reason}")
            for move in look["moves"]:
                emit(f"    moves {move}")
        if not found:
            note("nothing was planned anew by itself; --replan-every-s of `thalweg node` allows it")


def check(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Compare what really runs for placed queries with what was planned: those of all nodes, or of
    one (`--at NODE`)."""
    with reporting(), Service(url) as service:
        found: list[dict[str, Any]] = []
        silent: list[str] = []
        at = os.environ.get(AT)
        for node in [at] if at else _nodes(service):
            answer = service.try_request("GET", "/network/check", headers={"thalweg-at": node})
            if answer.status_code in (502, 503, 504) and not at:
                silent.append(node)
            else:
                found += service.checked(answer).json()
        if as_json:
            emit_json(found)
            return
        wrong = [f"{q['query']}: {problem}" for q in found for problem in q["problems"]]
        for line in wrong:
            emit(line)
        for node in silent:
            note(f"node {node} does not answer: its queries are not among these")
        if wrong:
            things = "1 thing runs" if len(wrong) == 1 else f"{len(wrong)} things run"
            raise CommandFailed(f"{things} otherwise than planned")
        note(_fine(len(found)))


def _fine(queries: int) -> str:
    if not queries:
        return (
            "nothing to check: no query was placed (`submit --strategy`, `--spread`, `--movable`)"
        )
    told = "1 query runs as it was" if queries == 1 else f"{queries} queries run as they were"
    return f"[green]✓[/] {told} planned"


def _nodes(service: Service) -> list[str]:
    return [node["name"] for node in service.get("/network/nodes")]
