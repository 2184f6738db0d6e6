"""Entry point of the `thalweg` command; one module for each sub-command."""

import os
from importlib.metadata import version
from typing import Annotated

import typer

from thalweg.cli.apply import apply
from thalweg.cli.backup import backup, restore, upgrade
from thalweg.cli.bench import CONTEXT as BENCH_CONTEXT
from thalweg.cli.bench import bench
from thalweg.cli.client import AT, CA
from thalweg.cli.demo import demo
from thalweg.cli.dev import dev
from thalweg.cli.doctor import doctor
from thalweg.cli.experiment import experiment
from thalweg.cli.explain import explain
from thalweg.cli.move import move
from thalweg.cli.network import network
from thalweg.cli.node import node
from thalweg.cli.plan import plan
from thalweg.cli.ps import ps
from thalweg.cli.push import push
from thalweg.cli.query import query
from thalweg.cli.replay import replay
from thalweg.cli.results import results
from thalweg.cli.shell import shell
from thalweg.cli.simulate import simulate
from thalweg.cli.sinks import sinks
from thalweg.cli.size import size
from thalweg.cli.stop import stop
from thalweg.cli.streams import streams
from thalweg.cli.submit import submit
from thalweg.cli.testing import run_cases

app = typer.Typer(
    name="thalweg",
    help="Continuous queries, planned together and run on Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)

COMMANDS = (
    demo,
    dev,
    node,
    shell,
    submit,
    apply,
    run_cases,
    push,
    ps,
    results,
    query,
    explain,
    streams,
    sinks,
    stop,
    move,
    replay,
    backup,
    restore,
    upgrade,
    plan,
    bench,
    experiment,
    simulate,
    size,
    doctor,
)

CONTEXTS = {bench: BENCH_CONTEXT}
NAMES = {run_cases: "test"}  # where it is not the function's own

app.add_typer(network)

for command in COMMANDS:
    app.command(NAMES.get(command), context_settings=CONTEXTS.get(command))(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"thalweg {version('thalweg')}")
        raise typer.Exit


@app.callback()
def main(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,  # answers before anything else is checked
            help="Print the version and exit.",
        ),
    ] = False,
    at: Annotated[
        str | None, typer.Option(envvar=AT, help="The node of a network that is to answer.")
    ] = None,
    ca: Annotated[
        str | None,
        typer.Option(envvar=CA, help="The certificate of the network's authority, for https."),
    ] = None,
) -> None:
    """Continuous queries, planned together and run on Spark."""
    if at is not None:
        os.environ[AT] = at
    if ca is not None:
        os.environ[CA] = ca
