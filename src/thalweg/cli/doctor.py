"""thalweg doctor: whether this machine can run Thalweg, a line for each thing that matters."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.checks import CHECKS, Finding, Surroundings
from thalweg.cli.client import AsJson
from thalweg.cli.exits import FAILED
from thalweg.cli.output import emit_json, stdout_console

_MARKS = {"ok": "[green]✓[/]", "warning": "[yellow]![/]", "failed": "[red]✗[/]"}


def doctor(
    data_dir: Annotated[Path, typer.Option(help="The data directory to be used.")] = Path(
        "thalweg-data"
    ),
    host: Annotated[str, typer.Option(help="The address to be used.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to be used.")] = 7341,
    master: Annotated[
        str | None, typer.Option(help="A Spark master, to be looked at from its own tasks.")
    ] = None,
    store: Annotated[
        str | None, typer.Option(help="An object store, to be tried, as s3://BUCKET/FOLDER.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check Java, Python, packages, memory, disk and port, with --master what a cluster lacks, and
    with --store what an object store can do. The exit code is 1 if something is missing."""
    surroundings = Surroundings(data_dir, host, port)
    findings = [check(surroundings) for check in CHECKS]
    if store is not None:
        from thalweg.engine.store_checks import check_store

        findings += [Finding(*found) for found in check_store(store)]
    if master is not None and not any(f.verdict == "failed" for f in findings):
        from thalweg.engine.cluster_checks import check_cluster

        findings += [Finding(*found) for found in check_cluster(master, data_dir, store or "")]
    if as_json:
        emit_json([asdict(f) for f in findings])
    else:
        _print(findings)
    if any(f.verdict == "failed" for f in findings):
        raise typer.Exit(FAILED)


def _print(findings: list[Finding]) -> None:
    from rich.markup import escape

    console = stdout_console()
    for f in findings:
        advice = f"  → {escape(f.advice)}" if f.advice else ""
        console.print(f"{_MARKS[f.verdict]} {f.what:<15} {escape(f.found)}{advice}", soft_wrap=True)
