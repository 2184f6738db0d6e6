"""What the home of a stream has decided of its tolerance classes, as it is written down.

| what | is |
|---|---|
| class | a tolerance by value or by rows, of some keys, from when on it has counted |
| start | a number in labels: of all that a class lets through, or what it held at an instant and
          lets through from there on, for who came later |
| generation | from an instant on, labels have the numbers that have started by then |

The past of those that start with a generation is handed over when the stream comes there. Classes
that are new have the stream's past from a publication that begins with it, from which all rows
come from then on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

import msgspec
from msgspec import structs

from thalweg.plan.catalog import StreamDef
from thalweg.plan.encoding import EncodingError
from thalweg.plan.nodes import Tolerant
from thalweg.plan.travelling import decode_plan, rebound
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.routes import Handed, Route


class Class(msgspec.Struct, frozen=True, array_like=True):
    """`packed` is the plan; it has counted from the horizon on."""

    number: int
    text: str
    packed: bytes
    horizon: int
    generation: int


class Start(msgspec.Struct, frozen=True, array_like=True):
    """`since`: the instant at which its class held what it begins with (BEGINNING: nothing, as the
    class began with it)."""

    number: int
    class_: int
    generation: int
    since: int = BEGINNING

    @property
    def joins(self) -> bool:
        return self.since > BEGINNING


class Generation(msgspec.Struct, frozen=True, array_like=True):
    """From `since` on. Rows come from the publication: the one before, if no class is new."""

    number: int
    since: int
    publication: str

    @property
    def name(self) -> str:
        return str(self.number)


class Gone(msgspec.Struct, frozen=True, array_like=True):
    """What was due below an instant was gone when a generation's past was handed over."""

    generation: int
    below: int


class Book(msgspec.Struct, frozen=True, dict=True):
    """Of one stream, in order of their numbers."""

    classes: tuple[Class, ...] = ()
    starts: tuple[Start, ...] = ()
    generations: tuple[Generation, ...] = ()
    gone: tuple[Gone, ...] = ()

    @cached_property
    def by_text(self) -> Mapping[str, Class]:
        return {c.text: c for c in self.classes}

    @cached_property
    def by_number(self) -> Mapping[int, Class]:
        return {c.number: c for c in self.classes}

    @cached_property
    def started(self) -> Mapping[int, Start]:
        return {s.number: s for s in self.starts}

    @cached_property
    def last_starts(self) -> Mapping[int, Start]:
        """By class."""
        return {s.class_: s for s in self.starts}

    def generation(self, name: str) -> Generation | None:
        return next((g for g in self.generations if g.name == name), None)

    def horizon(self, start: Start) -> int:
        return self.by_number[start.class_].horizon

    def fresh(self, generation: int) -> list[Start]:
        return [s for s in self.starts if s.generation == generation]

    def complete_from(self, starts: Collection[Start]) -> int:
        """What a class holds may be as old as its horizon."""
        return min((self.horizon(s) for s in starts), default=BEGINNING)

    def begun(self, generation: int) -> list[Class]:
        """The classes that have begun by then."""
        return [c for c in self.classes if c.generation <= generation]

    def words(self, generation: int) -> Mapping[int, str]:
        """By class: how labels say it from a generation on."""
        if generation not in self._words:
            found: dict[int, list[str]] = {}
            for start in self.starts:
                if start.generation <= generation:
                    found.setdefault(start.class_, []).append(str(start.number))
            self._words[generation] = {c: ",".join(numbers) for c, numbers in found.items()}
        return self._words[generation]

    @cached_property
    def _words(self) -> dict[int, dict[int, str]]:
        return {}

    @cached_property
    def routes(self) -> tuple[Route, ...]:
        """By which the stream is fed: a generation is as a publication."""
        made = []
        for place, g in enumerate(self.generations):
            fresh = self.fresh(g.number)
            complete = self.complete_from(fresh) if fresh else g.since
            past = Handed(None, complete)
            made.append(Route(g.name, since=g.since, past=past, hands_over=place > 0))
        return tuple(made)

    def gone_below(self, start: Start) -> int:
        """Of what a start has let through, what is older is gone."""
        later = (g.below for g in self.gone if g.generation > start.generation)
        return max(later, default=BEGINNING)

    # --- changes

    def with_gone(self, generation: int, below: int) -> Book:
        if below <= BEGINNING:
            return self
        left = [g for g in self.gone if g.generation > generation or g.below > below]
        return structs.replace(self, gone=(*left, Gone(generation, below)))

    def switched(self, name: str) -> Book:
        """All generations before one are over."""
        names = [g.name for g in self.generations]
        return structs.replace(self, generations=self.generations[names.index(name) :])

    def without(self, numbers: Collection[int]) -> Book:
        """These have no readers any more, and classes without any have ended."""
        starts = tuple(s for s in self.starts if s.number not in numbers)
        read = {s.class_ for s in starts}
        return structs.replace(
            self, starts=starts, classes=tuple(c for c in self.classes if c.number in read)
        )

    @property
    def publications(self) -> set[str]:
        return {g.publication for g in self.generations}


def tolerant_of(packed: bytes, base: StreamDef) -> Tolerant:
    """Raises EncodingError."""
    found = rebound(decode_plan(packed), lambda _: base)
    if not isinstance(found, Tolerant):
        raise EncodingError("a class is a tolerance of a stream")
    return found


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Book).decode
