"""`thalweg bench NAME`: the benchmarks of the source tree, in the common form."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import thalweg
from thalweg.experiments.report import publish

BAD_INPUT = 2


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
    benches = _benches()
    if name == "list":
        for known, about in benches.items():
            typer.echo(f"{known:14} {about}")
        return
    if name not in benches:
        _refuse(f"there is no benchmark {name}; there are {', '.join(benches)}")
    module = importlib.import_module(f"bench.{name.replace('-', '_')}")
    parameters = module.Parameters.quick() if quick else module.Parameters()
    parameters = dataclasses.replace(parameters, **_changes(parameters, set_ or []))
    console = Console(stderr=True)
    with console.status(f"bench {name}") as status:
        report = module.run(parameters, lambda text: status.update(f"bench {name}: {text}"))
    publish(report, as_json=json, out=out)


def _benches() -> dict[str, str]:
    """The `bench` folder stands beside `src` in a source tree; a wheel does not carry it."""
    root = Path(thalweg.__file__).parents[2]
    if not (root / "bench" / "__init__.py").exists():
        _refuse("benchmarks need a source tree: clone the project and run `make setup`")
    sys.path.insert(0, str(root))
    return dict(importlib.import_module("bench").BENCHES)


def _changes(parameters: Any, settings: list[str]) -> dict[str, Any]:
    fields = {f.name: getattr(parameters, f.name) for f in dataclasses.fields(parameters)}
    changes = {}
    for setting in settings:
        field, _, value = setting.partition("=")
        if field not in fields:
            _refuse(f"--set {setting}: the parameters are {', '.join(fields)}")
        try:
            changes[field] = _read(value, fields[field])
        except ValueError:
            _refuse(f"--set {setting}: {field} is like {fields[field]!r}")
    return changes


def _read(value: str, like: Any) -> Any:
    if isinstance(like, tuple):
        return tuple(_read(part, like[0]) for part in value.split(","))
    return type(like)(value)


def _refuse(message: str) -> None:
    typer.echo(f"thalweg bench: {message}", err=True)
    raise typer.Exit(BAD_INPUT)
