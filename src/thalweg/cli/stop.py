"""thalweg stop: drop queries."""

from __future__ import annotations

from typing import Annotated

import typer

from thalweg.cli.client import DEFAULT_URL, AsJson, Service, Unreachable, Url, quoted
from thalweg.cli.exits import CommandFailed, reporting
from thalweg.cli.output import complain, emit_json, note, plain


def stop(
    names: Annotated[list[str], typer.Argument(help="Queries to stop.")],
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Stop queries: they are dropped with their results and state."""
    stopped, failures = [], []
    with reporting(), Service(url) as service:
        for name in names:
            try:
                service.request("DELETE", f"/queries/{quoted(name)}")
            except Unreachable:
                raise
            except CommandFailed as refused:
                failures.append(refused)
            else:
                stopped.append(name)
                note(f"[green]✓[/] {plain(name)} stopped")
    if as_json:
        emit_json({"stopped": stopped})
    for failure in failures:
        complain(str(failure))
    if failures:
        raise typer.Exit(max(f.code for f in failures))
