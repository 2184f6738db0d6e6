"""How far a replay has come: a line on stderr that keeps changing, on a terminal only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from thalweg.cli.output import notes
from thalweg.engine.replay import Status

_TEXT = (
    "{task.fields[rows_in]:,} tuples in, {task.fields[rows_out]:,} rows out, "
    "tick {task.fields[ticks]}"
)


@contextmanager
def progress() -> Iterator[Callable[[Status], None]]:
    if not notes.is_terminal:
        yield lambda _: None
        return
    columns = (SpinnerColumn(), TextColumn(_TEXT), TimeElapsedColumn())
    with Progress(*columns, console=notes, transient=True) as shown:
        task = shown.add_task("", total=None, rows_in=0, rows_out=0, ticks=0)

        def watch(status: Status) -> None:
            shown.update(task, rows_in=status.rows_in, rows_out=status.rows_out, ticks=status.ticks)

        yield watch
