"""thalweg submit: CQL from files, folders, stdin or the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Unreachable, Url
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.output import complain, emit, emit_json, note, plain


class Text(NamedTuple):
    name: str
    cql: str
    folder: Path


def submit(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files, folders (all their .cql files), or - for stdin."),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option("--execute", "-e", help="CQL given right here; repeatable.")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Submit CQL statements: each file counts as a whole, or, with a mistake in it, not at all.

    Prints the names of the queries that now stand. Mistakes are listed at the end; the exit code
    is 2 if there was one in a text, 3 if the service can't be reached.
    """
    with reporting(), Service(url) as service:
        texts = list(_texts(paths or [], text or []))
        if not texts:
            raise CommandFailed("nothing to submit: give files, folders, - or -e TEXT", BAD_INPUT)
        failures = [f for t in texts if (f := _submit(service, t, as_json)) is not None]
        for failure in failures:
            complain(str(failure))
        if failures:
            note(f"[red]{len(failures)} of {len(texts)} not submitted[/]")
            raise typer.Exit(max(f.code for f in failures))


def _submit(service: Service, text: Text, as_json: bool) -> CommandFailed | None:
    body = {"cql": text.cql, "name": text.name, "folder": str(text.folder)}
    try:
        done: dict[str, Any] = service.request("POST", "/queries", json=body).json()
    except Unreachable:
        raise
    except CommandFailed as failure:
        if as_json:
            emit_json({"name": text.name, "error": str(failure)})
        return failure
    for warning in done["warnings"]:
        note(f"[yellow]{plain(warning['text'])}[/]")
    note(f"[green]✓[/] {plain(text.name)}: {plain(_summary(done))}")
    if as_json:
        emit_json({"name": text.name, **done})
    else:
        for query in done["queries"]:
            emit(query)
    return None


def _summary(done: dict[str, Any]) -> str:
    others = len(done["created"]) - len(done["queries"])
    parts = [(len(done["queries"]), "queries"), (others, "streams and views")]
    said = [f"{count} {what}" for count, what in parts if count]
    if done["dropped"]:
        said.append(f"{len(done['dropped'])} dropped")
    return ", ".join(said) or "nothing in it"


def _texts(paths: list[str], given: list[str]) -> Iterator[Text]:
    here = Path.cwd()
    for path in paths:
        if path == "-":
            yield Text("<stdin>", sys.stdin.read(), here)
            continue
        found = Path(path)
        if found.is_dir():
            files = sorted(found.glob("*.cql"))
            if not files:
                raise CommandFailed(f"{path} has no .cql files", BAD_INPUT)
            for file in files:
                yield _text(file)
        else:
            yield _text(found)
    for number, cql in enumerate(given, 1):
        yield Text("<-e>" if len(given) == 1 else f"<-e {number}>", cql, here)


def _text(file: Path) -> Text:
    try:
        return Text(str(file), file.read_text(), file.resolve().parent)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CommandFailed(f"can't read {file}: {reason}", BAD_INPUT) from None
