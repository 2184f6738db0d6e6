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
from thalweg.cli.output import complain, emit, emit_json, note, notes, plain


def submit(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files, folders (all .cql files below them), or - for stdin."),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option("--execute", "-e", help="CQL given right here; repeatable.")
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
                total.add(_submit(service, batch), as_json)
                advance(sum(len(t.cql) for t in batch), total.done)
        total.tell(texts)


def _submit(service: Service, batch: list[Text]) -> list[dict[str, Any]]:
    texts = [{**t._asdict(), "folder": str(t.folder)} for t in batch]
    answer = service.request("POST", "/queries/bulk", json={"texts": texts})
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


class _Total:
    def __init__(self) -> None:
        self.queries = self.others = self.dropped = self.written = 0
        self.errors: list[str] = []

    @property
    def done(self) -> int:
        return self.queries + self.others + self.dropped + self.written

    def add(self, results: list[dict[str, Any]], as_json: bool) -> None:
        for result in results:
            self.queries += len(result["queries"])
            self.others += len(result["created"]) - len(result["queries"])
            self.dropped += len(result["dropped"])
            self.written += result["written"]
            self.errors += [e["text"] for e in result["errors"]]
            for warning in result["warnings"]:
                note(f"[yellow]{plain(warning['text'])}[/]")
            if as_json:
                emit_json(result)
        names = [name for result in results for name in result["queries"]]
        if names and not as_json:
            emit("\n".join(names))

    def tell(self, texts: list[Text]) -> None:
        where = texts[0].name if len(texts) == 1 else f"{len(texts):,} texts"
        if self.done or not self.errors:
            note(f"[green]✓[/] {plain(where)}: {self._summary()}")
        for error in self.errors:
            complain(error)
        if self.errors:
            note(f"[red]{len(self.errors):,} of {self.done + len(self.errors):,} not submitted[/]")
            raise typer.Exit(BAD_INPUT)

    def _summary(self) -> str:
        parts = [
            (self.queries, "queries"),
            (self.others, "streams and views"),
            (self.dropped, "dropped"),
            (self.written, "INSERT and DELETE"),
        ]
        return ", ".join(f"{count:,} {what}" for count, what in parts if count) or "nothing in it"


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
