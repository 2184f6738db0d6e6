"""A node's engine as `handover` sees it, with rows as plain integers.

A fragment says of each instant the sum of all rows so far: state that nobody can rebuild from a
bounded past, and that shows every row that is lost or counted twice. It has one reader, which reads
at the owner that it knows, in order, and is told in band where it goes on.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import msgspec

from thalweg.adapt.handover import (
    Adopted,
    CannotGive,
    CannotTake,
    Discard,
    Ended,
    Fetch,
    Fetched,
    Freeze,
    Frozen,
    Give,
    GoneOver,
    Handover,
)
from thalweg.adapt.handover.messages import WAYS, Step
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

WORK_US = 200_000
AT_ONCE = 50  # instants in a message


def row(fragment: str, instant: int) -> int:
    return 1 + seed_of(instant, fragment) % 1000


# --- messages ---


class Read(Message, frozen=True):
    fragment: str
    epoch: int
    since: int


class Said(Message, frozen=True):
    fragment: str
    epoch: int
    since: int
    values: tuple[int, ...]


class Moved(Message, frozen=True):
    """All below `tau` was said: go on there."""

    fragment: str
    epoch: int
    tau: int
    to: Address
    next_epoch: int


class Close(Message, frozen=True):
    fragment: str
    epoch: int


class Closed(Message, frozen=True):
    fragment: str
    epoch: int


class Ask(Message, frozen=True):
    """For a move: what the fragment has added up."""

    move: str
    fragment: str
    epoch: int


class StateOf(Message, frozen=True):
    move: str
    frontier: int
    total: int
    is_final: bool


class NotGiven(Message, frozen=True):
    move: str


# --- what a node remembers ---


class Owned(msgspec.Struct):
    """A fragment that is computed here, or was."""

    fragment: str
    epoch: int
    frontier: int
    total: int
    low: int
    values: list[int] = []  # said, from `low` on
    is_frozen: bool = False
    tau: int | None = None  # given away
    to: Address = ""
    move: str = ""  # by which it has come


class Reading(msgspec.Struct):
    fragment: str
    at: Address
    epoch: int
    place: int
    total: int  # what the last value was
    owners: list[Address]
    closing: list[tuple[Address, int]] = []


class Disk(msgspec.Struct):
    owned: dict[str, Owned] = {}
    reading: dict[str, Reading] = {}
    moves: int = 0


class World(Protocol):
    @property
    def instant(self) -> int: ...
    @property
    def is_calm(self) -> bool: ...
    def owns(self, address: Address) -> list[str]: ...
    def reads(self, address: Address) -> list[tuple[str, Address]]: ...
    def places(self, address: Address) -> list[Address]: ...
    def wrong(self, why: str) -> None: ...


class HandoverEngine:
    name = "engine"
    messages: ClassVar[tuple[type[Message], ...]] = (
        Read, Said, Moved, Close, Closed, Ask, StateOf, NotGiven,
    )  # fmt: skip
    listens_to: ClassVar[tuple[str, ...]] = ("handover",)

    def __init__(self, world: World, address: Address, handover: Handover) -> None:
        self._world, self.own, self._handover = world, address, handover
        self.disk = Disk()
        self._generator = Generator(0)

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, Init):
            self._generator = Generator(event.seed)
            packed = event.persisted.get("disk")
            if packed is not None:
                self.disk = msgspec.msgpack.decode(packed, type=Disk)
            else:
                for fragment in self._world.owns(self.own):
                    self.disk.owned[_key(fragment, 0)] = Owned(fragment, 0, 0, 0, 0)
                for fragment, at in self._world.reads(self.own):
                    self.disk.reading[fragment] = Reading(fragment, at, 0, 0, 0, [at])
            return [SetTimer("work", 1 + self._generator.below(WORK_US)), self._written()]
        if isinstance(event, TimerFired):
            return [SetTimer("work", WORK_US), *self._work(), self._written()]
        if isinstance(event, Heard):
            return [*self._heard(event.value), self._written()]
        if isinstance(event, Receive):
            return [*self._received(event.sender, event.message), self._written()]
        return []

    def _written(self) -> Effect:
        return Persist("disk", msgspec.msgpack.encode(self.disk))

    def _work(self) -> list[Effect]:
        effects: list[Effect] = []
        for owned in self.disk.owned.values():
            while not owned.is_frozen and owned.frontier < self._world.instant:
                owned.total += row(owned.fragment, owned.frontier)
                owned.values.append(owned.total)
                owned.frontier += 1
            if not owned.is_frozen and not self._world.is_calm and self._generator.below(25) == 0:
                effects += self._give(owned)
        for reading in self.disk.reading.values():
            read = Read(reading.fragment, reading.epoch, reading.place)
            effects.append(Send(reading.at, read))
            effects += [Send(at, Close(reading.fragment, e)) for at, e in reading.closing]
        return effects

    def _give(self, owned: Owned) -> list[Effect]:
        to = self._generator.choice(self._world.places(self.own))
        if to == self.own:
            return []
        self.disk.moves += 1
        move, way = f"{self.own}.{self.disk.moves}", self._generator.choice(WAYS)
        key = _key(owned.fragment, owned.epoch)
        return [Tell("handover", Give(move, key, to, owned.epoch + 1, way))]

    # --- what the protocol says ---

    def _heard(self, value: object) -> list[Effect]:
        match value:
            case Freeze(move, key):
                owned = self.disk.owned.get(key)
                if owned is None:
                    return [Tell("handover", CannotGive(move, "it is not here"))]
                owned.is_frozen = True
                return [Tell("handover", Frozen(move, owned.frontier))]
            case Ended(giving) if giving.step is Step.KEPT:
                key = giving.fragment
                owned = self.disk.owned.get(key)
                others = (g for g in self._handover.giving().values() if g.fragment == key)
                if owned is not None and not any(g.step is not Step.KEPT for g in others):
                    owned.is_frozen = False
            case Ended(giving) if giving.step is Step.GIVEN:
                owned = self.disk.owned.get(giving.fragment)
                if owned is None:
                    return [Tell("handover", GoneOver(giving.move))]
                owned.is_frozen, owned.tau, owned.to = True, giving.tau, giving.to
                return [Deliver(giving)]
            case Fetch(move, key, sender, epoch, tau):
                fragment = key.rpartition("~")[0]
                if _key(fragment, epoch) in self.disk.owned and tau is not None:
                    return [Tell("handover", Adopted(move))]
                return [Send(sender, Ask(move, fragment, epoch - 1))]
            case Discard(move, key, epoch):
                own = _key(key.rpartition("~")[0], epoch)
                if own in self.disk.owned and self.disk.owned[own].move == move:
                    del self.disk.owned[own]
        return []

    # --- what nodes say ---

    def _received(self, sender: Address, message: Message) -> list[Effect]:
        match message:
            case Ask(move, fragment, epoch):
                owned, giving = self.disk.owned.get(_key(fragment, epoch)), None
                giving = self._handover.giving().get(move)
                if owned is None or giving is None or giving.step in (Step.KEPT, Step.GIVEN):
                    return [Send(sender, NotGiven(move))]
                is_final = giving.step is Step.FROZEN and owned.is_frozen
                return [Send(sender, StateOf(move, owned.frontier, owned.total, is_final))]
            case NotGiven(move):
                return [Tell("handover", CannotTake(move, "it is not given"))]
            case StateOf(move, frontier, total, is_final):
                return self._arrived(move, frontier, total, is_final)
            case Read() | Close():
                return self._read(sender, message)
            case Said(fragment, epoch, since, values):
                self._take(sender, fragment, epoch, since, values)
            case Moved(fragment, epoch, tau, to, next_epoch):
                reading = self.disk.reading.get(fragment)
                if reading is not None and reading.epoch == epoch and reading.place == tau:
                    reading.closing.append((sender, epoch))
                    reading.at, reading.epoch = to, next_epoch
                    reading.owners.append(to)
            case Closed(fragment, epoch):
                reading = self.disk.reading.get(fragment)
                if reading is not None and (sender, epoch) in reading.closing:
                    reading.closing.remove((sender, epoch))
        return []

    def _arrived(self, move: str, frontier: int, total: int, is_final: bool) -> list[Effect]:
        taking = self._handover.taking().get(move)
        if taking is None:
            return []
        if taking.tau is None:
            return [Tell("handover", Fetched(move))]
        if not is_final or frontier != taking.tau:
            return []  # of an earlier question
        fragment = taking.fragment.rpartition("~")[0]
        made = Owned(fragment, taking.epoch, frontier, total, frontier, move=move)
        self.disk.owned.setdefault(_key(fragment, taking.epoch), made)
        return [Tell("handover", Adopted(move))]

    def _read(self, sender: Address, message: Read | Close) -> list[Effect]:
        key = _key(message.fragment, message.epoch)
        owned = self.disk.owned.get(key)
        if isinstance(message, Close):
            if owned is not None and owned.tau is not None:
                del self.disk.owned[key]
            return [Send(sender, Closed(message.fragment, message.epoch))]
        if owned is None or message.since < owned.low:
            return []
        gone = message.since - owned.low
        owned.values, owned.low = owned.values[gone:], owned.low + gone
        if owned.tau is not None and message.since >= owned.tau:
            moved = owned.tau, owned.to, owned.epoch + 1
            return [Send(sender, Moved(owned.fragment, owned.epoch, *moved))]
        said = tuple(owned.values[:AT_ONCE])
        return [Send(sender, Said(owned.fragment, owned.epoch, owned.low, said))]

    def _take(
        self, sender: Address, fragment: str, epoch: int, since: int, values: tuple[int, ...]
    ) -> None:
        reading = self.disk.reading.get(fragment)
        if reading is None or (reading.at, reading.epoch) != (sender, epoch):
            return
        if since > reading.place:
            return
        for value in values[reading.place - since :]:
            reading.total += row(fragment, reading.place)
            if value != reading.total:
                told = f"{value} of {reading.place}, and not {reading.total}"
                self._world.wrong(f"{self.own} read {told} as {fragment}~{epoch} at {sender}")
                return
            reading.place += 1


def _key(fragment: str, epoch: int) -> str:
    return f"{fragment}~{epoch}"
