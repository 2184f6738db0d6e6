"""The command: a prompt on a terminal, a script from a pipe."""

from __future__ import annotations

import sys

import typer

from thalweg.cli.client import DEFAULT_URL, Service, Url
from thalweg.cli.exits import BAD_INPUT, reporting
from thalweg.cli.output import emit
from thalweg.cli.shell.lines import Lines, piped, prompted
from thalweg.cli.shell.session import Session

_GREETING = r"Thalweg at {url}. Statements end with ;  \? lists commands, \q leaves."


def shell(url: Url = DEFAULT_URL) -> None:
    """A prompt: statements, \\d and other commands, live results, completion with Tab, history.

    A SELECT is answered once, as of now; ISTREAM SELECT shows its rows as they come, until Ctrl-C.
    From a pipe, statements are run one by one, and the exit code is 2 if one had a mistake.
    """
    with reporting(), Service(url) as service:
        session = Session(service)
        is_terminal = sys.stdin.isatty()
        service.get("/health")
        lines: Lines = prompted(session.words) if is_terminal else piped(sys.stdin)
        if is_terminal:
            emit(_GREETING.format(url=service.url))
        session.run(lines)
        if session.failed and not is_terminal:
            raise typer.Exit(BAD_INPUT)
