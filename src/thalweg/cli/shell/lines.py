"""Lines from a terminal, with history and completion by readline, or from a pipe."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

MOST_HISTORY = 10_000


class Lines(Protocol):
    def read(self, *, is_first: bool) -> str | None:
        """The next line; None at the end. KeyboardInterrupt gives up what was typed."""


class piped:  # noqa: N801 (used like a function)
    def __init__(self, source: Iterable[str]) -> None:
        self._lines: Iterator[str] = iter(source)

    def read(self, *, is_first: bool) -> str | None:
        line = next(self._lines, None)
        return None if line is None else line.rstrip("\n")


def prompted(words: Callable[[], Iterable[str]]) -> Lines:
    return _Prompt(words)


class _Prompt:
    def __init__(self, words: Callable[[], Iterable[str]]) -> None:
        import atexit
        import readline

        path = history_file()
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            readline.read_history_file(path)
        readline.set_history_length(MOST_HISTORY)
        atexit.register(_save, path)
        readline.set_completer_delims(" \t\n()[],;=<>+-*/'")
        readline.set_completer(Completer(words))
        is_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")

    def read(self, *, is_first: bool) -> str | None:
        try:
            return input("thalweg> " if is_first else "    ...> ")
        except EOFError:
            return None


def _save(path: Path) -> None:
    import readline

    with suppress(OSError):
        readline.write_history_file(path)


def history_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "thalweg" / "history"


class Completer:
    """Offers words that begin like what was typed, in the case in which it was typed."""

    def __init__(self, words: Callable[[], Iterable[str]]) -> None:
        self._words = words
        self._found: list[str] = []

    def __call__(self, typed: str, state: int) -> str | None:
        if state == 0:
            self._found = self._candidates(typed)
        return self._found[state] if state < len(self._found) else None

    def _candidates(self, typed: str) -> list[str]:
        def as_typed(word: str) -> str:
            return word.lower() if word.isupper() and typed and typed.islower() else word

        key = typed.lower()
        found = sorted({as_typed(w) for w in self._words() if w.lower().startswith(key)})
        return [f"{found[0]} "] if len(found) == 1 else found  # what is certain is done with
