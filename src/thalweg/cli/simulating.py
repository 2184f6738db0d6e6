"""Runs what `thalweg simulate` is asked for: a list, a script, one seed or many."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

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
from thalweg.sim.run import Outcome
from thalweg.sim.run import run as run_seed
from thalweg.sim.scenarios.registry import SCENARIOS, UnknownScenario, scenario_named
from thalweg.sim.script import ScriptError, perform
from thalweg.sim.soak import soak

ALL = "all"


class Request(NamedTuple):
    scenario: str | None
    seed: int
    nodes: int | None
    trace: bool
    seeds: int
    jobs: int
    rewrite: bool
    as_json: bool


def run(asked: Request) -> None:
    name = asked.scenario
    with reporting():
        if name is None:
            _list(as_json=asked.as_json)
        elif name.endswith(".txt"):
            _script(Path(name), asked.rewrite)
        elif asked.seeds > 1 or name == ALL:
            _soak(name, asked.seed, asked.seeds, asked.jobs, as_json=asked.as_json)
        else:
            _one(name, asked.seed, asked.nodes, asked.trace, as_json=asked.as_json)


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
    outcome = run_seed(kind, seed, nodes=nodes, show=emit if trace else None)
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
