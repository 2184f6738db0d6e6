"""Errors of a replay as messages that point into its file, and as exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from thalweg.cli.exits import BAD_INPUT, FAILED, CommandFailed

if TYPE_CHECKING:
    from thalweg.cql import Script


def show(text: str) -> None:
    """A message that has been laid out already."""
    sys.stderr.write(text + "\n")


@contextmanager
def blaming(file: Path, text: str, script: Script) -> Iterator[None]:
    """Inside, what is wrong with the input ends the command with 2, all else with 1."""
    from thalweg.engine.replay import ReplayError
    from thalweg.engine.shared.ingest.normalise import IngestError
    from thalweg.engine.shared.state.store import StoreError
    from thalweg.engine.sinks.base import SinkError
    from thalweg.engine.sources import SourceError
    from thalweg.plan.nodes import PlanError

    try:
        yield
    except SourceError as error:
        show(_at_stream(error.stream, str(error), file, text, script))
        raise typer.Exit(BAD_INPUT) from None
    except (ReplayError, IngestError, StoreError, SinkError, PlanError) as error:
        raise CommandFailed(str(error), BAD_INPUT) from None
    except (CommandFailed, typer.Exit):
        raise
    except BrokenPipeError:
        # What is still buffered has nowhere to go; Python would complain about it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
    except Exception as error:
        raise CommandFailed(
            f"the replay failed: {type(error).__name__}: {error}", FAILED
        ) from error


def _at_stream(stream: str | None, message: str, file: Path, text: str, script: Script) -> str:
    """The message with the place where the stream is defined."""
    from thalweg.cql.errors import Mistake

    for statement in script.statements:
        if statement.name is not None and statement.name.text == stream:
            return Mistake(message, statement.name.span).diagnostic(text).render(text, str(file))
    return f"{file}: error: {message}"
