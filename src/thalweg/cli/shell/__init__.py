"""thalweg shell: statements and their results, at a prompt."""

from thalweg.cli.shell.command import shell

__all__ = ["shell"]
