"""A node's engine as `succession` sees it, with rows as plain integers.

A home has a stream, one row an instant, and drops what nobody holds, at once. A publisher says of
each instant the sum of all rows in the fragment's window. A reader adds them up, in order.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import msgspec

from thalweg.overlay.generator import Generator, seed_of
from thalweg.overlay.protocol import (
    Address,
    Deliver,
    Effect,
    Event,
    Heard,
    Init,
    Message,
    Persist,
    Receive,
    Send,
    SetTimer,
    Tell,
    TimerFired,
)
from thalweg.overlay.succession import Follow, Following, Held, Hold, Need, Reached, TakeOver

WORK_US = 200_000
AT_ONCE = 50  # instants in a message
_START = -1  # nothing was read yet


def row(stream: str, instant: int) -> int:
    return seed_of(instant, stream) % 1000 if instant >= 0 else 0


def said(needs: tuple[Need, ...], reach: int, instant: int) -> int:
    """What a fragment says of an instant."""
    window = range(instant - reach, instant + 1)
    return sum(row(n.stream, i) for n in needs for i in window)


# --- messages ---


class Begin(Message, frozen=True):
    """Compute a fragment from an instant on."""

    publication: str
    needs: tuple[Need, ...]
    reach: int
    since: int


class Read(Message, frozen=True):
    publication: str
    since: int


class Said(Message, frozen=True):
    publication: str
    since: int
    values: tuple[int, ...]


class Unknown(Message, frozen=True):
    publication: str


class Fetch(Message, frozen=True):
    publication: str
    stream: str
    since: int


class Rows(Message, frozen=True):
    publication: str
    stream: str
    since: int
    values: tuple[int, ...]


class Lacking(Message, frozen=True):
    """The stream is not had from there on."""

    publication: str
    stream: str
    since: int


# --- what a node remembers ---


class Wanted(msgspec.Struct):
    """A fragment that this node reads."""

    follow: Follow
    number: int = 0  # of its publications
    since: int = 0  # where the present one begins
    place: int = 0  # all below it was read
    is_held: bool = False


class Computed(msgspec.Struct):
    """A fragment that this node computes: rows at hand, and where they begin and end."""

    begin: Begin
    next: int
    rows: dict[str, list[int]]
    low: int
    values: list[int] = []  # said, from `low` on


class Disk(msgspec.Struct):
    has_from: int = 0
    holds: dict[str, int] = {}
    wanted: dict[str, Wanted] = {}
    computed: dict[str, Computed] = {}


class World(Protocol):
    @property
    def instant(self) -> int: ...
    def wants(self, address: Address) -> list[Follow]: ...
    def places(self, address: Address) -> list[Address]: ...
    def wrong(self, why: str) -> None: ...
    def lacks(self, home: Address, stream: str, publication: str, since: int) -> None: ...


class SuccessionEngine:
    name = "engine"
    messages: ClassVar[tuple[type[Message], ...]] = (
        Begin, Read, Said, Unknown, Fetch, Rows, Lacking,
    )  # fmt: skip
    listens_to: ClassVar[tuple[str, ...]] = ("succession",)

    def __init__(self, world: World, address: Address) -> None:
        self._world, self.own = world, address
        self.disk = Disk()
        self._generator = Generator(0)

    @property
    def stream(self) -> str:
        return f"s@{self.own}"

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, Init):
            self._generator = Generator(event.seed)
            packed = event.persisted.get("disk")
            effects: list[Effect] = [SetTimer("work", 1 + self._generator.below(WORK_US))]
            if packed is not None:
                self.disk = msgspec.msgpack.decode(packed, type=Disk)
            else:  # new, or its disk was lost: it reads from now on
                self.disk.has_from = now = self._world.instant
                for follow in self._world.wants(self.own):
                    self.disk.wanted[follow.key] = Wanted(follow, now * 1000, now, now)
            effects += [Tell("succession", w.follow) for w in self.disk.wanted.values()]
            return [*effects, self._written()]
        if isinstance(event, TimerFired):
            return [SetTimer("work", WORK_US), *self._work(), self._written()]
        if isinstance(event, Heard):
            return [*self._heard(event.value), self._written()]
        if isinstance(event, Receive):
            return [*self._received(event.sender, event.message), self._written()]
        return []

    def _written(self) -> Effect:
        return Persist("disk", msgspec.msgpack.encode(self.disk))

    # --- home and publisher ---

    def _work(self) -> list[Effect]:
        effects: list[Effect] = []
        least = min([self._world.instant, *self.disk.holds.values()])
        self.disk.has_from = max(self.disk.has_from, least)
        for name, computed in self.disk.computed.items():
            for need in computed.begin.needs:
                upto = self._fetched(computed, need.stream)
                effects.append(Send(need.home, Fetch(name, need.stream, upto)))
        for key, wanted in self.disk.wanted.items():
            if wanted.is_held:
                effects += self._ask(wanted)
            effects.append(Tell("succession", Reached(key, wanted.place)))
        return effects

    @staticmethod
    def _fetched(computed: Computed, stream: str) -> int:
        return computed.next - computed.begin.reach + len(computed.rows[stream])

    def _publication(self, wanted: Wanted) -> str:
        return f"{wanted.follow.key}.{wanted.number}"

    def _ask(self, wanted: Wanted) -> list[Effect]:
        name, follow = self._publication(wanted), wanted.follow
        assert follow.reach is not None
        if wanted.place == wanted.since:
            return [Send(follow.publisher, Begin(name, follow.needs, follow.reach, wanted.since)),
                    Send(follow.publisher, Read(name, wanted.place))]  # fmt: skip
        return [Send(follow.publisher, Read(name, wanted.place))]

    # --- what succession says ---

    def _heard(self, value: object) -> list[Effect]:
        match value:
            case Hold(holder, number, streams):
                self.disk.holds.pop(holder, None)
                for stream, since in streams:
                    if stream == self.stream:
                        self.disk.holds[holder] = since
                return [Tell("succession", Held(holder, number))]
            case Following(key):
                wanted = self.disk.wanted.get(key)
                if wanted is not None and not wanted.is_held:
                    wanted.is_held = True  # what was before, homes need not have
                    assert wanted.follow.reach is not None
                    wanted.place = wanted.since = self._world.instant + wanted.follow.reach
            case TakeOver(key, publisher, _):
                wanted = self.disk.wanted.get(key)
                if wanted is not None and wanted.follow.publisher == publisher:
                    return self._elsewhere(wanted)
        return []

    def _elsewhere(self, wanted: Wanted) -> list[Effect]:
        at = self._generator.choice(self._world.places(self.own))
        wanted.follow = msgspec.structs.replace(wanted.follow, publisher=at)
        wanted.number += 1
        wanted.since = wanted.place
        return [Tell("succession", wanted.follow), Deliver(wanted.follow)]

    # --- what nodes say ---

    def _received(self, sender: Address, message: Message) -> list[Effect]:
        match message:
            case Begin(name, needs, _, since):
                if name not in self.disk.computed:
                    rows: dict[str, list[int]] = {n.stream: [] for n in needs}
                    self.disk.computed[name] = Computed(message, since, rows, since)
            case Fetch(name, stream, since):
                if since < self.disk.has_from and since >= 0:
                    return [Send(sender, Lacking(name, stream, since))]
                upto = min(self._world.instant, since + AT_ONCE)
                values = tuple(row(stream, i) for i in range(since, upto))
                return [Send(sender, Rows(name, stream, since, values))]
            case Rows(name, stream, since, values):
                self._take_rows(name, stream, since, values)
            case Lacking(name, stream, since):
                computed = self.disk.computed.get(name)
                if computed is not None and since == self._fetched(computed, stream):
                    self._world.lacks(sender, stream, name, since)
                    del self.disk.computed[name]
            case Read(name, since):
                computed = self.disk.computed.get(name)
                if computed is None:
                    return [Send(sender, Unknown(name))]
                gone = max(since - computed.low, 0)
                computed.values, computed.low = computed.values[gone:], computed.low + gone
                return [Send(sender, Said(name, computed.low, tuple(computed.values[:AT_ONCE])))]
            case Said(name, since, values):
                self._take_values(name, since, values)
            case Unknown(name):
                for wanted in self.disk.wanted.values():
                    if self._publication(wanted) == name and wanted.place > wanted.since:
                        return self._elsewhere(wanted)
        return []

    def _take_rows(self, name: str, stream: str, since: int, values: tuple[int, ...]) -> None:
        computed = self.disk.computed.get(name)
        if computed is None:
            return
        begin, rows = computed.begin, computed.rows
        if since != self._fetched(computed, stream):
            return  # late or twice
        rows[stream] += values
        ready = min(len(r) for r in rows.values()) - begin.reach
        for _ in range(ready):
            computed.values.append(sum(sum(r[: begin.reach + 1]) for r in rows.values()))
            computed.next += 1
            for of in rows.values():
                del of[0]

    def _take_values(self, name: str, since: int, values: tuple[int, ...]) -> None:
        for wanted in self.disk.wanted.values():
            follow = wanted.follow
            if self._publication(wanted) != name or since > wanted.place:
                continue  # of a publisher that is not asked any more, or a gap
            assert follow.reach is not None
            for value in values[wanted.place - since :]:
                if value != said(follow.needs, follow.reach, wanted.place):
                    self._world.wrong(f"{self.own} read {value} of {wanted.place} as {name}")
                wanted.place += 1
