"""`thalweg experiment NAME`: re-run a figure of the sources, and draw it beside what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.measuring import progress_bar, with_settings
from thalweg.cli.output import emit_json, emit_table
from thalweg.experiments.registry import UnknownExperiment, experiments, load
from thalweg.experiments.report import publish


def experiment(
    name: Annotated[str | None, typer.Argument(help="Which one; without a name, a list.")] = None,
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
        if name is None:
            _list(as_json=json)
            return
        try:
            module = load(name)
        except UnknownExperiment as error:
            raise CommandFailed(str(error), BAD_INPUT) from None
        parameters = module.Parameters.quick() if quick else module.Parameters()
        settings = [f"seeds={seeds}"] if seeds is not None else []
        parameters = with_settings(parameters, settings + (set_ or []))
        if out is not None and out.exists() and not out.is_dir():
            # Better now than when the hours of the run are spent.
            raise CommandFailed(f"--out {out}: a file is in the way", BAD_INPUT)
        with progress_bar(f"experiment {name}") as progress:
            report = module.run(parameters, progress)
        publish(report, as_json=json, out=out)


def _list(*, as_json: bool) -> None:
    known = experiments()
    if as_json:
        emit_json([{"name": name, "about": about} for name, about in known.items()])
    else:
        columns = (("NAME", "left"), ("ABOUT", "left"))
        emit_table(columns, known.items(), empty="there are no experiments")
