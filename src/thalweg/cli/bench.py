"""`thalweg bench NAME`: the benchmarks of the source tree, in the common form."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated

import typer

import thalweg
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.measuring import progress_bar, with_settings
from thalweg.experiments.report import publish


def bench(
    name: Annotated[str, typer.Argument(help="Which benchmark; `list` names them all.")],
    quick: Annotated[bool, typer.Option(help="About a minute instead of the full run.")] = False,
    json: Annotated[bool, typer.Option("--json", help="The report as JSON on stdout.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for CSV, PNG and Markdown.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter, as name=value.")
    ] = None,
) -> None:
    """Measure, beside the alternatives, in one run."""
    with reporting():
        benches = _benches()
        if name == "list":
            for known, about in benches.items():
                typer.echo(f"{known:14} {about}")
            return
        if name not in benches:
            raise CommandFailed(
                f"there is no benchmark {name}; there are {', '.join(benches)}", BAD_INPUT
            )
        module = importlib.import_module(f"bench.{name.replace('-', '_')}")
        parameters = with_settings(
            module.Parameters.quick() if quick else module.Parameters(), set_ or []
        )
        with progress_bar(f"bench {name}") as progress:
            report = module.run(parameters, progress)
        publish(report, as_json=json, out=out)


def _benches() -> dict[str, str]:
    """The `bench` folder stands beside `src` in a source tree; a wheel does not carry it."""
    root = Path(thalweg.__file__).parents[2]
    if not (root / "bench" / "__init__.py").exists():
        raise CommandFailed(
            "benchmarks need a source tree: clone the project and run `make setup`", BAD_INPUT
        )
    sys.path.insert(0, str(root))
    return dict(importlib.import_module("bench").BENCHES)
