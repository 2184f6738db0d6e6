"""thalweg plan: decide which queries of a problem are admitted, and where everything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def plan(
    problem: Annotated[
        str | None,
        typer.Argument(help="A problem as JSON, - for stdin; without one, a list of strategies."),
    ] = None,
    strategy: Annotated[str, typer.Option(help="Who decides.")] = "sqpr",
    weights: Annotated[
        str | None,
        typer.Option(help="What counts, as network=1,cpu=1,balance=1,admitted=1000."),
    ] = None,
    work_limit: Annotated[
        int | None, typer.Option(min=0, help="How hard a solver tries, in its own units.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Queries that are planned together.")] = 1,
    explain: Annotated[
        list[str] | None, typer.Option(help="A query whose plan is shown; all for every one.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help="Draw hosts and traffic, or the plan of --explain.")
    ] = None,
    dot: Annotated[Path | None, typer.Option(help="The same for Graphviz.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Plan all queries of a problem: who gets in, what runs where, and why others don't."""
    from thalweg.cli.planning import Request, run  # solvers load slowly: not for every command

    run(
        Request(
            problem, strategy, weights or "", work_limit, batch, explain or [], svg, dot, as_json
        )
    )
