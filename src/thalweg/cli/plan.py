"""thalweg plan: decide which queries of a problem are admitted, and where everything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.client import DEFAULT_URL, Url

DEFAULT_STRATEGY = "sqpr"


def plan(
    problem: Annotated[
        str | None,
        typer.Argument(help="A problem as JSON, - for stdin; without one, a list of strategies."),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(help="Who decides: sqpr; with --live the strategy of the node that is asked."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="What counts, as network=1,cpu=1,balance=1,admitted=1000."),
    ] = None,
    work_limit: Annotated[
        int | None, typer.Option(min=0, help="How hard a solver tries, in its own units.")
    ] = None,
    reuse: Annotated[
        str | None,
        typer.Option(help="Which sub-joins to favour for others: forecast, pairs or none."),
    ] = None,
    restraint: Annotated[
        bool, typer.Option("--restraint", help="Refuse what needs more CPU than any host has left.")
    ] = False,
    batch: Annotated[int, typer.Option(min=1, help="Queries that are planned together.")] = 1,
    cql: Annotated[
        Path | None,
        typer.Option(help="Queries in CQL; the problem then has hosts and base streams only."),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(help="Where results are wanted: HOST for all queries, or QUERY=HOST."),
    ] = None,
    bound_ms: Annotated[
        float | None, typer.Option(min=0, help="A bound on every query's latency.")
    ] = None,
    explain: Annotated[
        list[str] | None, typer.Option(help="A query whose plan is shown; all for every one.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help="Draw hosts and traffic, or the plan of --explain.")
    ] = None,
    map_file: Annotated[
        Path | None,
        typer.Option("--map", help="Draw operators and traffic on the network, as SVG."),
    ] = None,
    dot: Annotated[Path | None, typer.Option(help="The same for Graphviz.")] = None,
    live: Annotated[
        bool,
        typer.Option("--live", help="Plan --cql for a running network, as it is measured now."),
    ] = False,
    url: Url = DEFAULT_URL,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Plan all queries of a problem: who gets in, what runs where, and why others don't."""
    if live:
        from thalweg.cli.plan_live import run_live

        run_live(cql, strategy, url, as_json=as_json, bound_ms=bound_ms)
        return
    from thalweg.cli.planning import Request, run  # solvers load slowly: not for every command

    run(
        Request(
            problem=problem,
            strategy=strategy or DEFAULT_STRATEGY,
            weights=weights or "",
            work_limit=work_limit,
            reuse=reuse,
            restraint=restraint,
            batch=batch,
            cql=cql,
            proxies=proxy or [],
            bound_ms=bound_ms,
            explain=explain or [],
            svg=svg,
            map_file=map_file,
            dot=dot,
            as_json=as_json,
        )
    )
