"""`python -m thalweg` is the command."""

from thalweg.cli.main import app

app()
