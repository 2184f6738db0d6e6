"""`python -m thalweg.cli` is the `thalweg` command."""

from thalweg.cli.main import app

app()
