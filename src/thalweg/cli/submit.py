"""thalweg submit: CQL from files, folders, stdin or the command line."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Url
from thalweg.cli.cql_inputs import Text, batches_of, files_of, texts_of
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.output import complain_at, emit, emit_json, note, notes, plain

MOST_NAMED = 6  # of a kind; more are counted

MOST_NOTICES = 5  # on history that is not there
LOOK_EVERY_S, LONGEST_WAIT_S = 0.5, 30.0  # for room


def submit(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files, folders (all .cql files below them), or - for stdin."),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option("--execute", "-e", help="CQL given right here; repeatable.")
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            help="In a network: queries run at the node asked (local), near their input (home), or "
            "operator by operator where sqpr, in-network, edge, edge+, fragments or cosmos puts "
            "them."
        ),
    ] = None,
    bound_ms: Annotated[
        float | None,
        typer.Option(
            help="With a strategy that plans: results may take so long from their tuples' homes, "
            "by the delays between nodes; a query that can't keep it is refused.",
        ),
    ] = None,
    spread: Annotated[
        str | None,
        typer.Option(
            help="In a network: a query's join, aggregate or DISTINCT runs at so many nodes (3), "
            "or at these (n1,n2), each with some buckets of its key."
        ),
    ] = None,
    parts: Annotated[
        int | None,
        typer.Option(
            help="With --spread: ranges of buckets, each of which can move by itself; one for each "
            "node unless said."
        ),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(
            help="In a network: swap has a join made across the homes of its streams, in an order "
            "that is chosen batch by batch."
        ),
    ] = None,
    routing: Annotated[
        str | None,
        typer.Option(
            help="With --plan swap: how rows choose their way: both (lottery and back-pressure), "
            "lottery, back-pressure, or fixed:n3,n1 for a static order."
        ),
    ] = None,
    movable: Annotated[
        bool,
        typer.Option(
            "--movable",
            help="In a network: what computes a query can be moved to other nodes (`thalweg "
            "move`); its results stay.",
        ),
    ] = False,
    eager: Annotated[
        bool,
        typer.Option("--eager", help="Among peers: rows at once, of which some may be missing."),
    ] = False,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait", help="A text whose queries a strategy does not admit waits until they fit."
        ),
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Submit CQL statements: each counts for itself, and one with a mistake is left out.

    Prints the names of the queries that now stand. Mistakes are listed at the end; the exit code
    is 2 if there was one, 3 if the service can't be reached.
    """
    with reporting(), Service(url) as service:
        files = files_of(paths or [])
        if not files and not text:
            raise CommandFailed("nothing to submit: give files, folders, - or -e TEXT", BAD_INPUT)
        if parts is not None and spread is None:
            raise CommandFailed("--parts is said with --spread only", BAD_INPUT)
        headers = {"thalweg-strategy": strategy} if strategy else {}
        if bound_ms is not None:
            headers["thalweg-bound-ms"] = str(bound_ms)
        if spread:
            headers["thalweg-spread"] = spread if parts is None else f"{spread}/{parts}"
        if routing is not None and plan is None:
            raise CommandFailed("--routing is said with --plan swap only", BAD_INPUT)
        if plan:
            headers["thalweg-plan"] = plan
        if routing:
            headers["thalweg-routing"] = routing
        if movable and (spread or strategy):
            raise CommandFailed("--movable is said without --spread and --strategy", BAD_INPUT)
        if movable:
            headers["thalweg-movable"] = "1"
        if eager:
            headers["thalweg-eager"] = "1"
        total = _Total()
        texts = list(texts_of(files, text or []))
        with _progress(sum(len(t.cql) for t in texts)) as advance:
            for batch in batches_of(texts):
                results = _submit(service, batch, headers)
                if wait:
                    results = _admitted(service, batch, results, headers)
                total.add(results, as_json)
                advance(sum(len(t.cql) for t in batch), total.done)
        total.tell()


def _submit(service: Service, batch: list[Text], headers: dict[str, str]) -> list[dict[str, Any]]:
    texts = [{**t._asdict(), "folder": str(t.folder)} for t in batch]
    answer = service.request("POST", "/queries/bulk", json={"texts": texts}, headers=headers)
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def _admitted(
    service: Service,
    batch: list[Text],
    results: list[dict[str, Any]],
    headers: dict[str, str],
) -> list[dict[str, Any]]:
    """With those that were refused submitted again until there is room."""
    version = None  # there may be room again already: once more at once
    while refused := [i for i, result in enumerate(results) if result.get("refused")]:
        if version is None:
            for i in refused:
                note(f"[yellow]{plain(batch[i].name)} waits: {plain(results[i]['detail'])}[/]")
        version = _changed_version(service, version)
        for i in refused:
            (results[i],) = _submit(service, [batch[i]], headers)
    return results


def _changed_version(service: Service, version: str | None) -> str:
    """What it is when queries or nodes have come or gone. Rates and costs change without being
    told, so it is not waited for for ever."""
    until = time.monotonic() + LONGEST_WAIT_S
    while True:
        now: str = service.get("/network/room")["version"]
        if now != version or time.monotonic() >= until:
            return now
        time.sleep(LOOK_EVERY_S)


class _Total:
    def __init__(self) -> None:
        self.changes: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.written = 0  # statements that changed rows
        self.errors: list[str] = []
        self.notices = 0

    @property
    def done(self) -> int:
        return len(self.changes) + len(self.notes) + self.written

    def add(self, results: list[dict[str, Any]], as_json: bool) -> None:
        for result in results:
            self.changes += result["changes"]
            self.notes += result["notes"]
            self.written += result["written"]
            self.errors += [e["text"] for e in result["errors"]]
            for warning in result["warnings"]:
                note(f"[yellow]{plain(warning['text'])}[/]")
            for notice in result["notices"]:
                self._tell_of_history(notice["text"])
            if as_json:
                emit_json(result)
        names = [name for result in results for name in result["queries"]]
        if names and not as_json:
            emit("\n".join(names))

    def _tell_of_history(self, text: str) -> None:
        self.notices += 1
        if self.notices <= MOST_NOTICES:
            note(f"[yellow]note: {plain(text)}[/]")

    def tell(self) -> None:
        if self.notices > MOST_NOTICES:
            more = f"{self.notices - MOST_NOTICES:,} more windows"
            note(
                f"[yellow]note: and {more}; `thalweg ps` shows from when on results are complete[/]"
            )
        for line in summary(self.changes):
            note(f"[green]✓[/] {plain(line)}")
        for line in self.notes[:MOST_NAMED]:
            note(f"[green]✓[/] {plain(line)}")
        for line in rows_changed(self.written):
            note(f"[green]✓[/] {line}")
        if not self.done and not self.errors:
            note("nothing to do: no statement in it")
        for error in self.errors:
            complain_at(error)
        if self.errors:
            note(f"[red]{len(self.errors):,} of {self.done + len(self.errors):,} not submitted[/]")
            raise typer.Exit(BAD_INPUT)


def summary(changes: list[dict[str, Any]]) -> list[str]:
    """`created stream Reading, query hot`; many of a kind are counted."""
    lines = []
    for verb in dict.fromkeys(c["did"] for c in changes):
        mine = [c for c in changes if c["did"] == verb]
        parts = []
        for kind in dict.fromkeys(c["kind"] for c in mine):
            names = [c["name"] for c in mine if c["kind"] == kind]
            if len(names) > MOST_NAMED:
                parts.append(f"{len(names):,} {plural(kind)}")
            else:
                parts += [f"{kind} {name}" for name in names]
        lines.append(f"{verb} {', '.join(parts)}")
    return lines


def rows_changed(statements: int) -> list[str]:
    """What is said of INSERT and DELETE; nothing where there is none."""
    what = "statement" if statements == 1 else "statements"
    return [f"rows changed by {statements:,} {what}"] if statements else []


def plural(kind: str) -> str:
    return "queries" if kind == "query" else f"{kind}s"


@contextmanager
def _progress(size: int) -> Iterator[Any]:
    """A bar on a terminal; elsewhere nothing."""
    columns = (
        TextColumn("submitting"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %, {task.fields[done]:,} statements"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task("", total=max(size, 1), done=0)
        yield lambda characters, done: bar.update(task, advance=characters, done=done)
