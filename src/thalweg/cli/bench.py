"""`thalweg bench NAME`: the benchmarks of the source tree, in the common form."""

from __future__ import annotations

import dataclasses
import importlib
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

import thalweg
from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.measuring import progress_bar, with_settings
from thalweg.cli.stopping import interrupt
from thalweg.experiments.report import publish

# What a benchmark can be asked is known when it is loaded, not before.
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}


def bench(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Which one; without a name, a list.")] = "list",
    quick: Annotated[bool, typer.Option(help="About a minute instead of the full run.")] = False,
    json: Annotated[bool, typer.Option("--json", help="The report as JSON on stdout.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for CSV, PNG and Markdown.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter, as name=value.")
    ] = None,
) -> None:
    """Measure, beside the alternatives, in one run.

    A benchmark's parameters are options too: `thalweg bench many-queries --queries 1,1000
    --overlap 0.5`.
    """
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
        parameters = module.Parameters.quick() if quick else module.Parameters()
        settings = [*_as_settings(context.args, name, parameters), *(set_ or [])]
        parameters = with_settings(parameters, settings)
        if out is not None and out.exists() and not out.is_dir():
            # Better now than when the hours of the run are spent.
            raise CommandFailed(f"--out {out}: a file is in the way", BAD_INPUT)
        with _stopped_cleanly(), progress_bar(f"bench {name}") as progress:
            report = module.run(parameters, progress)
        publish(report, as_json=json, out=out)


@contextmanager
def _stopped_cleanly() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does: nodes and services that it has started are stopped."""
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _as_settings(options: Sequence[str], bench: str, parameters: Any) -> list[str]:
    """`--name value` and `--name=value` as `name=value`."""
    known = [f.name.replace("_", "-") for f in dataclasses.fields(parameters)]
    settings, left = [], iter(options)
    for option in left:
        name, equals, value = option.removeprefix("--").partition("=")
        if not option.startswith("--") or name not in known:
            raise CommandFailed(
                f"there is no option {option}: {bench} takes --{', --'.join(known)}", BAD_INPUT
            )
        given = value if equals else next(left, None)
        if given is None:
            raise CommandFailed(f"{option} needs a value", BAD_INPUT)
        settings.append(f"{name.replace('-', '_')}={given}")
    return settings


def _benches() -> dict[str, str]:
    """The `bench` folder stands beside `src` in a source tree; a wheel does not carry it."""
    root = Path(thalweg.__file__).parents[2]
    if not (root / "bench" / "__init__.py").exists():
        raise CommandFailed(
            "benchmarks need a source tree: clone the project and run `make setup`", BAD_INPUT
        )
    sys.path.insert(0, str(root))
    return dict(importlib.import_module("bench").BENCHES)
