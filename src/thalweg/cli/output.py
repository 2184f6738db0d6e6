"""Data goes to stdout, everything else to stderr. NO_COLOR is honoured by rich itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

notes = Console(stderr=True, highlight=False)


def stdout_console() -> Console:
    """For data that is worth colours; made when it is used, as stdout may have been replaced."""
    return Console(highlight=False)


def emit(line: str) -> None:
    """One line of data."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def emit_json(value: Any) -> None:
    emit(json.dumps(value, ensure_ascii=False))


def emit_lines(values: Iterable[Any]) -> None:
    """A JSON object to a line, as `jq` and `grep` like it."""
    for value in values:
        emit_json(value)


def note(message: str) -> None:
    """Progress, in a line; may hold rich markup."""
    notes.print(message, soft_wrap=True)


def complain(message: str) -> None:
    notes.print(Text("error: ", style="bold red") + Text(message), soft_wrap=True)


def complain_at(rendered: str) -> None:
    """A mistake in a text: it says itself where it is and that it is an error."""
    head, *rest = rendered.split("\n")
    place, sign, message = head.partition(" error: ")
    styled = Text(place) + Text(sign, style="bold red") + Text(message)
    notes.print(Text("\n").join([styled, *map(Text, rest)]), soft_wrap=True)


def plain(text: str) -> str:
    """Text that is shown as it stands."""
    return escape(text)


def emit_table(
    columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Any]], *, empty: str
) -> None:
    """A table on stdout: (heading, left or right) for each column; None is shown as a dash."""
    found = list(rows)
    if not found:
        note(empty)
        return
    console = stdout_console()
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for heading, justify in columns:
        table.add_column(heading, justify=justify, no_wrap=not console.is_terminal)  # type: ignore[arg-type]
    for row in found:
        table.add_row(*(Text("-" if v is None else str(v)) for v in row))
    if not console.is_terminal:
        # Piped: as wide as it needs, so that nothing is cut off.
        console.width = 10_000
    console.print(table)
