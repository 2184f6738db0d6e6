"""`thalweg experiment NAME`: re-run a figure of the sources, and draw it beside what they say."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.exits import BAD_INPUT, FAILED, CommandFailed, reporting
from thalweg.cli.measuring import progress_bar, with_settings
from thalweg.cli.output import complain, emit_json, emit_table, note
from thalweg.experiments.registry import UnknownExperiment, experiments, load
from thalweg.experiments.report import Report, publish, write

ALL = "all"


def experiment(
    name: Annotated[
        str | None, typer.Argument(help="Which one, or all; without a name, a list.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="About a minute instead of the full run.")] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many seeds, instead of the experiment's own.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The report as JSON on stdout.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for CSV, JSON, PNG, SVG and Markdown.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter, as name=value.")
    ] = None,
) -> None:
    """Re-run an experiment of the sources. Goals are reported; they don't change the exit code."""
    with reporting():
        if name is None or name == "list":
            _list(as_json=json)
            return
        if out is not None and out.exists() and not out.is_dir():
            # Better now than when the hours of the run are spent.
            raise CommandFailed(f"--out {out}: a file is in the way", BAD_INPUT)
        if name == ALL:
            _run_all(quick=quick, seeds=seeds, settings=set_ or [], as_json=json, out=out)
            return
        publish(_run(name, quick=quick, seeds=seeds, settings=set_ or []), as_json=json, out=out)


def _run(name: str, *, quick: bool, seeds: int | None, settings: list[str]) -> Report:
    try:
        module = load(name)
    except UnknownExperiment as error:
        raise CommandFailed(str(error), BAD_INPUT) from None
    parameters = module.Parameters.quick() if quick else module.Parameters()
    given = [f"seeds={seeds}"] if seeds is not None else []
    parameters = with_settings(parameters, given + settings)
    began = time.process_time()
    with progress_bar(f"experiment {name}") as progress:
        report = module.run(parameters, progress)
    told = ["thalweg experiment", name, *(["--quick"] if quick else [])]
    told += [f"--seeds {seeds}"] if seeds is not None else []
    told += [f"--set {setting}" for setting in settings]
    return replace(report, command=" ".join(told), took_s=time.process_time() - began)


def _run_all(
    *, quick: bool, seeds: int | None, settings: list[str], as_json: bool, out: Path | None
) -> None:
    """One after another, a line for each; what fails is told at the end, and the rest has run."""
    if settings:
        raise CommandFailed("--set goes with one experiment: parameters differ", BAD_INPUT)
    rows, failed = [], []
    for name in experiments():
        try:
            # Some experiments have no seeds to set; they run with what they have.
            report = _run(name, quick=quick, seeds=_seeds_of(name, seeds), settings=[])
        except Exception as error:  # the others are worth their run all the same
            failed.append(f"{name}: {error}")
            complain(failed[-1])
            continue
        if out is not None:
            write(report, out)
        met = sum(goal.met for goal in report.goals)
        rows.append((name, f"{report.took_s:.1f}", f"{met} of {len(report.goals)}"))
        note(f"{name}: {rows[-1][1]} s of CPU, {rows[-1][2]} goals met")  # all of them take long
    if as_json:
        keys = ("name", "took_s", "goals_met")
        emit_json([dict(zip(keys, row, strict=True)) for row in rows])
    else:
        columns = (("NAME", "left"), ("CPU S", "right"), ("GOALS MET", "right"))
        emit_table(columns, rows, empty="there are no experiments")
    if failed:
        raise CommandFailed("; ".join(failed), FAILED)


def _seeds_of(name: str, seeds: int | None) -> int | None:
    return seeds if hasattr(load(name).Parameters(), "seeds") else None


def _list(*, as_json: bool) -> None:
    known = experiments()
    if as_json:
        emit_json([{"name": name, "about": about} for name, about in known.items()])
    else:
        columns = (("NAME", "left"), ("ABOUT", "left"))
        emit_table(columns, known.items(), empty="there are no experiments")
