"""`thalweg simulate`: a scenario under a seed, many seeds of it, or a script."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.exits import BAD_INPUT, FAILED, CommandFailed, reporting
from thalweg.cli.measuring import progress_bar
from thalweg.cli.outcomes import (
    outcome_as_json,
    outcome_lines,
    show_tallies,
    tally_as_json,
)
from thalweg.cli.output import emit, emit_json, emit_table, note
from thalweg.sim.run import Outcome, run
from thalweg.sim.scenarios.registry import SCENARIOS, UnknownScenario, scenario_named
from thalweg.sim.script import ScriptError, perform
from thalweg.sim.soak import soak

ALL = "all"


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
    with reporting():
        if scenario is None:
            _list(as_json=json)
        elif scenario.endswith(".txt"):
            _script(Path(scenario), rewrite)
        elif seeds > 1 or scenario == ALL:
            _soak(scenario, seed, seeds, jobs, as_json=json)
        else:
            _one(scenario, seed, nodes, trace, as_json=json)


def _list(*, as_json: bool) -> None:
    if as_json:
        emit_json([{"name": k.name, "about": k.about} for k in SCENARIOS.values()])
    else:
        rows = [(k.name, k.about) for k in SCENARIOS.values()]
        emit_table((("NAME", "left"), ("ABOUT", "left")), rows, empty="there are no scenarios")


def _one(name: str, seed: int, nodes: int | None, trace: bool, *, as_json: bool) -> None:
    try:
        kind = scenario_named(name)
    except UnknownScenario as error:
        raise CommandFailed(str(error), BAD_INPUT) from None
    outcome = run(kind, seed, nodes=nodes, show=emit if trace else None)
    if as_json:
        emit_json(outcome_as_json(outcome))
    else:
        for line in outcome_lines(outcome):
            emit(line)
    if outcome.problem is not None:
        raise typer.Exit(FAILED)


def _soak(name: str, first_seed: int, seeds: int, jobs: int, *, as_json: bool) -> None:
    names = list(SCENARIOS) if name == ALL else [name]
    with progress_bar("simulate") as tell:

        def progress(outcome: Outcome, done: int, of: int) -> None:
            tell(outcome.scenario, done / of)
            if outcome.problem is not None:  # at once: there may be an hour to go
                again = f"thalweg simulate {outcome.scenario} --seed {outcome.options.seed} --trace"
                note(f"failed; again: {again}")

        try:
            tallies = soak(names, first_seed, seeds, jobs=jobs, progress=progress)
        except UnknownScenario as error:
            raise CommandFailed(str(error), BAD_INPUT) from None
    if as_json:
        emit_json([tally_as_json(t) for t in tallies])
    else:
        show_tallies(tallies)
    if any(t.failed for t in tallies):
        raise typer.Exit(FAILED)


def _script(path: Path, rewrite: bool) -> None:
    try:
        before = path.read_text()
        now = perform(before, str(path))
    except OSError as error:
        raise CommandFailed(f"{path}: {error.strerror}", BAD_INPUT) from None
    except ScriptError as error:
        raise CommandFailed(str(error), BAD_INPUT) from None
    emit(now.rstrip("\n"))
    if rewrite:
        path.write_text(now)
    elif now != before:
        raise CommandFailed(f"{path} prints something else now; --rewrite keeps it", FAILED)
