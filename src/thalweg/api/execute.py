"""Runs CQL on a site; what is wrong with a text, also with its sources, points into the text."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from thalweg.cql import CqlError, parse_script
from thalweg.cql.errors import DEFAULT_NAME, Mistake
from thalweg.engine.sinks.base import SinkError
from thalweg.engine.site.scripts import Script
from thalweg.engine.sources.errors import SourceError


class Executes(Protocol):
    """A site, or a node of a network."""

    def execute(self, text: str, *, name: str, folder: Path | None) -> Script: ...


def execute(
    site: Executes, text: str, *, name: str = DEFAULT_NAME, folder: Path | None = None
) -> Script:
    """As `Site.execute`. Raises CqlError."""
    try:
        return site.execute(text, name=name, folder=folder)
    except (SourceError, SinkError) as error:
        culprit = error.stream if isinstance(error, SourceError) else error.sink
        for statement in parse_script(text, name=name):
            if statement.name is not None and statement.name.text == culprit:
                mistake = Mistake(str(error), statement.name.span)
                raise CqlError([mistake.diagnostic(text)], text, name) from None
        raise
