"""thalweg replay: the queries of a file over its recorded sources, to the end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from thalweg.cli.exits import BAD_INPUT, FAILED, CommandFailed, reporting
from thalweg.cli.output import note, plain
from thalweg.cli.replay_errors import blaming, show

if TYPE_CHECKING:
    from thalweg.cql import Script
    from thalweg.engine.replay import Status
    from thalweg.plan.catalog import QueryDef

IN_PROCESS = "in-process"  # a master that is none: no Spark, all in this process


class Engine(StrEnum):
    shared = "shared"
    native = "native"
    reference = "reference"


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE.cql", help="Streams and queries.")],
    engine: Annotated[
        Engine, typer.Option(help="Thalweg's own, plain Structured Streaming, or brute force.")
    ] = Engine.shared,
    query: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this one; may be repeated.")
    ] = None,
    changelog: Annotated[
        bool,
        typer.Option(
            "--changelog/--stream",
            help="What enters and leaves each result, or only what enters (ISTREAM).",
        ),
    ] = True,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write DIR/QUERY.jsonl for each; print nothing."),
    ] = None,
    master: Annotated[
        str, typer.Option(help=f"Where Spark runs; {IN_PROCESS} does without it.")
    ] = "local[*]",
    tick_rows: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most new tuples to a tick.")
    ] = 250_000,
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the state here: what is interrupted can go on."),
    ] = None,
) -> None:
    """Run every query of a file over its recorded sources, and print what they say.

    Prints JSON lines {"query","ts","op","row"}: by ts, then in the order of the queries in the
    file, then - before +, then by row. Exits with 2 if the file can't be run, 1 if the run fails.
    """
    from thalweg.cli.replay_progress import progress
    from thalweg.engine.replay import Replay
    from thalweg.engine.replay import replay as run

    with reporting():
        text = _text_of(file)
        script = _compiled(file, text)
        chosen = _chosen(file, script, query or [])
        wants_spark = engine is not Engine.reference and master != IN_PROCESS
        with (
            blaming(file, text, script),
            _spark(master) if wants_spark else nullcontext() as spark,
            progress() as watch,
        ):
            job = Replay(
                queries=chosen,
                base_dir=file.resolve().parent,
                engine=engine.value,
                as_stream=not changelog,
                spark=spark,
                tick_rows=tick_rows,
                data_dir=data_dir,
                watch=watch,
            )
            status = run(job, out=out, to=None if out else sys.stdout.buffer)
        _tell_losses(status)


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"can't read {file}: {error.strerror}", BAD_INPUT) from None
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{file} is not UTF-8: {error}", BAD_INPUT) from None


def _compiled(file: Path, text: str) -> Script:
    from thalweg.cql import CqlError, compile_script

    try:
        script = compile_script(text, name=str(file))
    except CqlError as error:
        show(error.render())
        raise typer.Exit(BAD_INPUT) from None
    for warning in script.warnings:
        show(warning.render(text, str(file)))
    if script.writes:
        raise CommandFailed(
            f"{file} has INSERT or DELETE, which only a running service takes: "
            "put the rows into a file, and say FROM",
            BAD_INPUT,
        )
    return script


def _chosen(file: Path, script: Script, names: Sequence[str]) -> list[QueryDef]:
    from thalweg.engine.sources.errors import suggestion

    if not script.queries:
        raise CommandFailed(f"{file} has no query: add one with CREATE QUERY", BAD_INPUT)
    by_name = {q.name.lower(): q for q in script.queries}
    for name in names:
        if name.lower() not in by_name:
            known = suggestion(name, [q.name for q in script.queries])
            raise CommandFailed(f"{file} has no query {name}{known}", BAD_INPUT)
    wanted = {name.lower() for name in names} or by_name.keys()
    return [q for key, q in by_name.items() if key in wanted]


def _spark(master: str) -> AbstractContextManager[Any]:
    from thalweg.engine.session import SessionError, spark_session

    try:
        return spark_session(master)
    except SessionError as error:
        raise CommandFailed(str(error), FAILED) from None


def _tell_losses(status: Status) -> None:
    for stream, count in sorted(status.late.items()):
        note(f"{plain(stream)}: {count} tuples came too late and do not count")
    for stream, rejected in sorted(status.rejected.items()):
        first = plain(rejected.first_reason)
        note(f"{plain(stream)}: {rejected.count} rows were rejected, the first because of {first}")
