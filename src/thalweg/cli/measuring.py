"""What long work has in common: parameters by name, and a progress bar."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from thalweg.cli.exits import BAD_INPUT, CommandFailed
from thalweg.cli.output import notes, plain
from thalweg.experiments.report import Progress

_LOG_EVERY_S = 10.0


def with_settings(parameters: Any, settings: Sequence[str]) -> Any:
    """Every `name=value` of the settings replaces a parameter, read like the value that it had."""
    fields = {f.name: getattr(parameters, f.name) for f in dataclasses.fields(parameters)}
    changes = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        if name not in fields:
            raise CommandFailed(
                f"--set {setting}: the parameters are {', '.join(fields)}", BAD_INPUT
            )
        try:
            changes[name] = _read(value, fields[name])
        except ValueError:
            message = f"--set {setting}: {name} is like {fields[name]!r}"
            raise CommandFailed(message, BAD_INPUT) from None
    try:
        return dataclasses.replace(parameters, **changes)
    except ValueError as error:
        raise CommandFailed(f"--set {' '.join(settings)}: {error}", BAD_INPUT) from None


def _read(value: str, like: Any) -> Any:
    if isinstance(like, bool):
        if value not in ("true", "false"):
            raise ValueError(value)
        return value == "true"
    if isinstance(like, tuple):
        return tuple(_read(part, like[0]) for part in value.split(","))
    return type(like)(value)


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """On a terminal a bar, elsewhere a line now and then; on stderr in both cases."""
    if not notes.is_terminal:
        yield _Log(label)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=notes, transient=True) as shown:
        task = shown.add_task(plain(label), total=None)

        def tell(text: str, fraction: float | None = None) -> None:
            shown.update(task, description=plain(f"{label}: {text}"))
            if fraction is not None:
                shown.update(task, total=1.0, completed=fraction)

        yield tell


class _Log:
    def __init__(self, label: str) -> None:
        self._label = label
        self._told_at = -_LOG_EVERY_S

    def __call__(self, text: str, fraction: float | None = None) -> None:
        now = time.monotonic()
        if now - self._told_at >= _LOG_EVERY_S:
            self._told_at = now
            share = "" if fraction is None else f" ({fraction:.0%})"
            notes.print(plain(f"{self._label}: {text}{share}"), soft_wrap=True)
