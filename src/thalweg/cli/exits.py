"""Exit codes, and how errors become them: one line on stderr, never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from thalweg.cli.output import complain, complain_at

OK, FAILED, BAD_INPUT, UNREACHABLE = 0, 1, 2, 3


class CommandFailed(Exception):
    """What went wrong, for people, and the exit code that says so to scripts."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code

    def tell(self) -> None:
        complain(str(self))


class Mistakes(CommandFailed):
    """In a text; rendered with their places, and saying themselves that they are errors."""

    def __init__(self, rendered: str) -> None:
        super().__init__(rendered, BAD_INPUT)

    def tell(self) -> None:
        complain_at(str(self))


@contextmanager
def reporting() -> Iterator[None]:
    """Inside, CommandFailed ends the command."""
    try:
        yield
    except CommandFailed as error:
        error.tell()
        raise typer.Exit(error.code) from None
    except BrokenPipeError:
        # Whoever read our output has had enough, as `head` does. What is still buffered has nowhere
        # to go, and Python would complain about it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(OK) from None
