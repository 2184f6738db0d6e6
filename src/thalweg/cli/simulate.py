"""`thalweg simulate`: a scenario under a seed, many seeds of it, or a script."""

from __future__ import annotations

from typing import Annotated

import typer


def simulate(
    scenario: Annotated[
        str | None,
        typer.Argument(help="A scenario's name, `all`, or a script; without, a list."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides everything that happens.")] = 0,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="How many, instead of what the seed draws.")
    ] = None,
    trace: Annotated[bool, typer.Option(help="Print every event.")] = False,
    seeds: Annotated[
        int, typer.Option(min=1, help="Run so many seeds, from --seed on, and sum up.")
    ] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Processes, where there are many seeds.")] = 1,
    rewrite: Annotated[
        bool, typer.Option(help="Write a script's new output into its file.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="The verdict as JSON on stdout.")] = False,
) -> None:
    """Run protocols in the simulator. The exit code is 1 where a promise did not hold."""
    from thalweg.cli.simulating import Request, run  # the simulator loads slowly

    run(Request(scenario, seed, nodes, trace, seeds, jobs, rewrite, json))
