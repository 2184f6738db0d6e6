"""OPTIONS (…) of CREATE STREAM: all values are text, and an option nobody asked for is an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from thalweg.engine.sources.errors import SourceError, suggestion
from thalweg.plan.catalog import StreamDef

_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
T = TypeVar("T")


class Options:
    """Reads options one by one; `done` then refuses what is left."""

    error: type[ValueError] = SourceError

    def __init__(self, stream: StreamDef) -> None:
        self._stream = stream.name
        self._left = dict(stream.options)
        self._known: list[str] = []

    def text(self, name: str, default: str | None = None) -> str | None:
        self._known.append(name)
        return self._left.pop(name, default)

    def flag(self, name: str, default: bool) -> bool:
        return self._parsed(name, default, lambda text: _FLAGS[text.lower()], "true or false")

    def whole(self, name: str, default: int) -> int:
        return self._parsed(name, default, int, "a whole number")

    def number(self, name: str, default: float) -> float:
        return self._parsed(name, default, float, "a number")

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        by_name = {a: a for a in allowed}
        return self._parsed(name, default, lambda t: by_name[t.lower()], " or ".join(allowed))

    def character(self, name: str, default: str) -> str:
        def one(text: str) -> str:
            found = "\t" if text == "\\t" else text
            return found if len(found) == 1 else _fail(ValueError())

        return self._parsed(name, default, one, "one character")

    def _parsed(self, name: str, default: T, parse: Callable[[str], T], expected: str) -> T:
        text = self.text(name)
        if text is None:
            return default
        try:
            return parse(text)
        except (ValueError, KeyError):
            raise self.error(f"{self._stream}: option {name} is {expected}, not {text!r}") from None

    def starting_with(self, prefix: str) -> Mapping[str, str]:
        """Options for somebody else, told by how their names start."""
        found = {n: v for n, v in self._left.items() if n.startswith(prefix)}
        self._left = {n: v for n, v in self._left.items() if n not in found}
        return found

    def rest(self) -> Mapping[str, str]:
        """What has not been asked for: for someone else to judge."""
        left, self._left = self._left, {}
        return left

    def done(self) -> None:
        for name in self._left:
            raise self.error(
                f"{self._stream}: there is no option {name}{suggestion(name, self._known)}"
            )


def _fail(error: Exception) -> str:
    raise error
