"""A fragment's node is silent, or gone: who reads the fragment has it computed elsewhere.

What is needed for it, and who decides (`NETWORK.md`, "Choosing τ" and "What a loss means" in the
project's design; the successor begins at the least frontier that readers have acknowledged): a
publication has one reader, and where it is read from is that reader's decision alone. It has one
writer, so that nobody has to agree. A publisher that was only silent and comes back is not asked
any more; what it says nobody reads, and it is told to stop.

For a successor to begin where the reader is, the streams that the fragment is made of must still be
had from there, less what its windows reach back. So the reader tells their homes to keep them,
before the fragment begins, and from where on, as it comes along.

Messages: Keep, from a reader to a home: everything it wants kept there. It has a number, and an
older one that comes late counts for nothing. Kept: it is on the home's disk. Keep is repeated until
then, and when the reader has come along.

Requests: Follow, Unfollow, Reached, Gone, Held. Deliveries: Following, Hold, TakeOver.

Promise: a home never drops what the reader of a replayable fragment would need to have it computed
anew from where it is. A reader whose publisher is down for longer than `silent_for_us` is told to
take over, again and again, until it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import msgspec

from thalweg.overlay.membership import Down, Membership, Up
from thalweg.overlay.protocol import (
    Address,
    Call,
    CancelTimer,
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
    TimerFired,
)
from thalweg.overlay.succession.messages import (
    MESSAGES,
    Follow,
    Following,
    Gone,
    Held,
    Hold,
    Keep,
    Kept,
    Reached,
    TakeOver,
    Unfollow,
)
from thalweg.plan.windows import BEGINNING

_encode = msgspec.msgpack.Encoder().encode
_decode_follow = msgspec.msgpack.Decoder(Follow).decode
_decode_keep = msgspec.msgpack.Decoder(Keep).decode


@dataclass(frozen=True, slots=True)
class Settings:
    silent_for_us: int = 10_000_000  # a publisher that is down has so long to come back
    again_us: int = 1_000_000  # between two tries of anything
    remind_us: int = (
        30_000_000  # homes are told again what they hold: one may have forgotten this node
    )

    def __post_init__(self) -> None:
        if self.silent_for_us < 0 or self.again_us < 1:
            raise ValueError("a pause can't be negative, nor tries follow without one")


@dataclass(slots=True)
class _Told:
    """Of a home: what it was told last, and whether it has answered."""

    number: int = 0
    streams: tuple[tuple[str, int], ...] | None = None  # None: nothing since this node began
    is_kept: bool = False
    at_us: int = 0


class Succession:
    name = "succession"
    messages: ClassVar[tuple[type[Message], ...]] = MESSAGES
    listens_to: ClassVar[tuple[str, ...]] = ("membership",)

    def __init__(self, membership: Membership, settings: Settings | None = None) -> None:
        self._membership, self._settings = membership, settings or Settings()
        self._own: Address = ""
        self._followed: dict[str, Follow] = {}
        self._reached: dict[str, int] = {}
        self._waiting: set[str] = set()  # for all homes to answer
        self._told: dict[Address, _Told] = {}
        self._kept_for: dict[Address, Keep] = {}  # at a home, by reader
        self._gone: set[Address] = set()  # for good, as far as this node was told
        self._silent: set[Address] = set()  # for long enough

    # --- what others of this node may read ---

    def followed(self) -> dict[str, Follow]:
        return dict(self._followed)

    # --- events ---

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, Receive):
            return self._received(event.sender, event.message)
        if isinstance(event, Call):
            return self._asked(now_us, event.request)
        if isinstance(event, Heard):
            return self._heard(event.value)
        if isinstance(event, TimerFired):
            if event.key == "again":
                return [SetTimer("again", self._settings.again_us), *self._again(now_us)]
            assert isinstance(event.key, tuple)
            return self._has_been_silent(event.key[1])
        if isinstance(event, Init):
            return self._begin(event)
        return []

    def _begin(self, event: Init) -> list[Effect]:
        self._own = event.address
        for key, value in sorted(event.persisted.items()):
            kind, _, name = key.partition(" ")
            if kind == "follow":
                self._followed[name] = _decode_follow(value)
            else:
                self._kept_for[name] = _decode_keep(value)
        publishers = sorted({f.publisher for f in self._followed.values()})
        holds = [Deliver(Hold(a, k.number, k.streams)) for a, k in self._kept_for.items()]
        return [
            SetTimer("again", self._settings.again_us),
            *(self._watch(p) for p in publishers),  # nobody says that it is down, if it was before
            *holds,
        ]

    def _watch(self, address: Address) -> Effect:
        return SetTimer(("silent", address), self._settings.silent_for_us)

    def _heard(self, value: object) -> list[Effect]:
        if isinstance(value, Down) and self._reads_of(value.address):
            return [self._watch(value.address)]
        if isinstance(value, Up):
            self._silent.discard(value.address)
            self._gone.discard(value.address)
            return [CancelTimer(("silent", value.address))]
        return []

    # --- a reader ---

    def _asked(self, now_us: int, request: object) -> list[Effect]:
        match request:
            case Follow():
                return self._follow(now_us, request)
            case Unfollow(key):
                if self._followed.pop(key, None) is None:
                    return []
                self._reached.pop(key, None)
                self._waiting.discard(key)
                return [Persist(f"follow {key}", None), *self._keep(now_us)]
            case Reached(key, instant):
                if key in self._followed:
                    self._reached[key] = max(instant, self._reached.get(key, instant))
                return []
            case Gone(address):
                self._gone.add(address)
                return [*self._take_over(address), *self._release(address)]
            case Held(holder, number):
                kept = self._kept_for.get(holder)
                if kept is None or kept.number != number:
                    return []
                return [Send(holder, Kept(number))]
        return []

    def _follow(self, now_us: int, asked: Follow) -> list[Effect]:
        effects: list[Effect] = []
        if self._followed.get(asked.key) != asked:
            self._followed[asked.key] = asked
            effects.append(Persist(f"follow {asked.key}", _encode(asked)))
        self._waiting.add(asked.key)
        effects += self._keep(now_us)
        if asked.publisher not in (self._own, *self._membership.up()):
            effects.append(self._watch(asked.publisher))
        return effects + self._all_kept()

    def _keep(self, now_us: int) -> list[Effect]:
        """Tell homes what has changed."""
        wanted: dict[Address, dict[str, int]] = {home: {} for home in self._told}
        for key, follow in self._followed.items():
            if follow.reach is None:
                continue
            reached = self._reached.get(key, BEGINNING)
            # One instant more: its content at the instant before is what a successor begins with.
            since = BEGINNING if reached <= BEGINNING else reached - 1 - follow.reach
            for need in follow.needs:
                streams = wanted.setdefault(need.home, {})
                streams[need.stream] = min(since, streams.get(need.stream, since))
        effects: list[Effect] = []
        for home, streams in wanted.items():
            told = self._told.setdefault(home, _Told())
            all_of_them = tuple(sorted(streams.items()))
            if told.streams != all_of_them:
                told.number = max(told.number + 1, now_us)
                told.streams, told.is_kept, told.at_us = all_of_them, False, now_us
                effects.append(Send(home, Keep(told.number, all_of_them)))
        return effects

    def _again(self, now_us: int) -> list[Effect]:
        effects = self._keep(now_us)
        just = {e.to for e in effects if isinstance(e, Send)}
        for home, told in self._told.items():
            is_old = now_us - told.at_us >= self._settings.remind_us
            if (is_old or not told.is_kept) and home not in just and told.streams is not None:
                told.at_us = now_us
                effects.append(Send(home, Keep(told.number, told.streams)))
        for address in sorted(self._silent | self._gone):
            effects += self._take_over(address)
        return effects

    def _all_kept(self) -> list[Effect]:
        """Who has waited until all homes have answered."""
        effects: list[Effect] = []
        for key in sorted(self._waiting):
            follow = self._followed[key]
            homes = {n.home for n in follow.needs} if follow.reach is not None else set()
            if all(h in self._told and self._told[h].is_kept for h in sorted(homes)):
                self._waiting.discard(key)
                effects.append(Deliver(Following(key)))
        return effects

    # --- publishers that are silent ---

    def _reads_of(self, address: Address) -> list[Follow]:
        return [f for _, f in sorted(self._followed.items()) if f.publisher == address]

    def _has_been_silent(self, address: Address) -> list[Effect]:
        if address in (self._own, *self._membership.up()):
            return []
        self._silent.add(address)
        return self._take_over(address)

    def _take_over(self, address: Address) -> list[Effect]:
        found = self._reads_of(address)
        if not found:
            self._silent.discard(address)
            return []
        return [Deliver(TakeOver(f.key, address, address in self._gone)) for f in found]

    # --- a home, and its answers ---

    def _release(self, holder: Address) -> list[Effect]:
        """Nothing is kept for who is gone; should it be back after all, it asks again."""
        kept = self._kept_for.pop(holder, None)
        if kept is None:
            return []
        return [Persist(f"keep {holder}", None), Deliver(Hold(holder, kept.number, ()))]

    def _received(self, sender: Address, message: Message) -> list[Effect]:
        if isinstance(message, Keep):
            known = self._kept_for.get(sender)
            if known is not None and known.number > message.number:
                return []
            # Each number means one thing: said again, it only has to be answered again.
            self._kept_for[sender] = message
            is_new = known is None or known.number < message.number
            written = [Persist(f"keep {sender}", _encode(message))] if is_new else []
            return [*written, Deliver(Hold(sender, message.number, message.streams))]
        if isinstance(message, Kept):
            told = self._told.get(sender)
            if told is not None and told.number == message.number:
                told.is_kept = True
                return self._all_kept()
        return []
