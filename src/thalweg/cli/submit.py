"""thalweg submit: CQL from files, folders, stdin or the command line."""

from __future__ import annotations

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
            "operator by operator where sqpr, in-network, edge, edge+ or cosmos puts them."
        ),
    ] = None,
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
        total = _Total()
        texts = list(texts_of(files, text or []))
        with _progress(sum(len(t.cql) for t in texts)) as advance:
            for batch in batches_of(texts):
                total.add(_submit(service, batch, strategy), as_json)
                advance(sum(len(t.cql) for t in batch), total.done)
        total.tell()


def _submit(service: Service, batch: list[Text], strategy: str | None) -> list[dict[str, Any]]:
    texts = [{**t._asdict(), "folder": str(t.folder)} for t in batch]
    headers = {"thalweg-strategy": strategy} if strategy else None
    answer = service.request("POST", "/queries/bulk", json={"texts": texts}, headers=headers)
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


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
