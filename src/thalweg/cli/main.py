"""Entry point of the `thalweg` command."""

from importlib.metadata import version
from typing import Annotated

import typer

app = typer.Typer(
    name="thalweg",
    help="Continuous queries, planned together and run on Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)


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
) -> None:
    """Continuous queries, planned together and run on Spark."""
