"""thalweg results: what a query has said, and what it goes on to say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from thalweg.api.waiting import why_no_rows
from thalweg.cli import exact_json
from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Url, quoted
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.follow import follow_results
from thalweg.cli.instants import BEGINNING, Instants
from thalweg.cli.output import emit, emit_table, note, plain
from thalweg.cli.waiting import wait_for_backlog


def results(
    query: Annotated[str, typer.Argument(help="A standing query.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as rows come.")] = False,
    after: Annotated[
        str | None, typer.Option(help="Only rows behind this id (run.instant.ordinal).")
    ] = None,
    now: Annotated[
        bool, typer.Option("--now", help="What the result holds now, instead of its changes.")
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option(help="A file that keeps the last id: go on behind it, and keep it."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after so many rows.")] = None,
    give_up_s: Annotated[
        float, typer.Option(help="With --follow: how long to try to reach a lost service.")
    ] = 60.0,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Print a query's rows: instant, + or -, columns; with --json as JSON lines with their ids."""
    with reporting(), Service(url) as service:
        if now:
            if follow or after is not None or resume is not None:
                raise CommandFailed("--now reads the content once: leave the others out", BAD_INPUT)
            answer = service.request("GET", f"/queries/{quoted(query)}/content")
            show_content(exact_json.read(answer.text), limit, as_json)
            return
        start = _start(after, resume)
        if follow:
            rows = follow_results(service, query, start, give_up_s)
        else:
            rows = present(service, query, start)
        if not follow:
            wait_for_backlog(service, query)
        described = None if as_json else service.get(f"/queries/{quoted(query)}")
        instants = None if described is None else Instants(described)
        count = 0
        for id_, line in rows:
            if line is not None:
                count += 1
                emit(line if instants is None else readable(line, instants))
            if resume is not None:
                resume.write_text(id_ + "\n")
            if limit is not None and count >= limit:
                return
        if count == 0 and not follow:
            note(_nothing(service, query, start))


def _nothing(service: Service, query: str, start: str | None) -> str:
    if start is not None:
        return "no rows since then"
    why = why_no_rows(service.get(f"/queries/{quoted(query)}"), service.get("/streams"))
    return f"no rows yet: {plain(why)}"


def show_content(found: dict[str, Any], limit: int | None, as_json: bool) -> None:
    """The rows of a relation at an instant: a table, or JSON lines."""
    rows = found["rows"][:limit]
    if as_json:
        for row in rows:
            emit(exact_json.write(row))
    else:
        numeric = ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL")
        heads = [(n, "right" if t.startswith(numeric) else "left") for n, t in found["columns"]]
        cells = ([shown(v) for v in row.values()] for row in rows)
        emit_table(heads, cells, empty="no rows")
    at = found["at"]
    if at in ("beginning", "end"):
        at = f"the {at}"
    note("no instant is final yet" if at is None else f"as of {at}")


def _start(after: str | None, resume: Path | None) -> str | None:
    if after is not None and resume is not None:
        raise CommandFailed("--after and --resume both say where to start", BAD_INPUT)
    if resume is not None and resume.exists():
        return resume.read_text().strip() or None
    return after


def present(service: Service, query: str, after: str | None) -> Iterator[tuple[str, str | None]]:
    """All rows that there are, page by page: (id, JSON line)."""
    while True:
        params = {"format": "ndjson", **({"after": after} if after else {})}
        path = f"/queries/{quoted(query)}/results"
        answer = service.request("GET", path, params=params)
        lines = answer.text.splitlines()
        since = answer.headers.get("Thalweg-Complete-From")
        if after is None and "Thalweg-Possibly-Incomplete" in answer.headers:
            note("[yellow]rows come at once[/]: some may be missing where owners change")
        if after is None and since is not None:
            note(
                f"[yellow]results before {plain(since)} are no longer kept[/]: "
                "--now shows what the result holds"
            )
        for line in lines:
            yield json.loads(line)["id"], line
        after = answer.headers["Thalweg-Next"]
        if not lines:
            yield after, None
            return


def readable(line: str, instants: Instants) -> str:
    change: dict[str, Any] = exact_json.read(line)
    if change["op"] == "end":
        return end_mark(change, instants)
    row = "  ".join(f"{name}={shown(value)}" for name, value in change["row"].items())
    return f"{instants.text(change['ts'])}  {change['op']}  {row}"


def end_mark(change: dict[str, Any], instants: Instants) -> str:
    version = f"-- version {change['version']} ended"
    if change["ts"] <= BEGINNING:
        return f"{version} before it had said anything"
    return f"{version} at {instants.text(change['ts'])}"


def shown(value: Any) -> str:
    if value is None:
        return "NULL"
    return value if isinstance(value, str) else json.dumps(value)
