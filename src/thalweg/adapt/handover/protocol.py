"""A fragment goes to another node with its state, at an instant τ.

Source: the ways of `adapt/moves` (D-CAPE's MSLB without buckets, and pre-copy) for a fragment as a
whole, whose state is an engine's tables and not the protocol's. `adapt/moves` itself keeps the
rows: its processors are the join, its splits and its union are its readers and publishers, and its
messages carry segments. A live node has all of these already, so that what is left for a protocol
to say is who owns what from when on.

    precopy   Offer → Copied → freeze at τ → Finish → Taken → decide → Settled
    mslb      the same; before the freeze the receiver subscribes to the inputs, whose publishers
              keep rows for it, and copies nothing
    ptlb      the same; what is sent is what the sender has read and not used. The fragment stands
              at the receiver as the union of itself, without a past, and of the old track, which
              goes on at the sender as a fragment of its own
    stop      freeze at τ → Finish → Taken → decide → Settled

Who decides: the sender, alone. "From τ on at X, epoch e + 1" is on its disk before anybody hears of
it, and only when the receiver has the fragment on its own. Until then the move can end where it
began: if the receiver refuses, or is silent for too long, "it stays" is written down, the fragment
goes on at the sender, and the receiver is told to drop what it has. Readers learn in band: who has
read the sender up to τ is told to go on at the receiver.

Every message is repeated until it is answered, and carries all that its receiver has to know. The
receiver remembers moves that are over, so that a question that comes late does not begin one again;
and the sender's engine gives out state only while the move is open.

Promise: at every instant a fragment's rows are said from one state, each instant once; a move that
is interrupted ends on one side, and none stays open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import msgspec

from thalweg.adapt.handover.messages import (
    MESSAGES,
    STOP,
    Adopted,
    Busy,
    CannotGive,
    CannotTake,
    Copied,
    Discard,
    Done,
    Drop,
    Ended,
    Fetch,
    Fetched,
    Finish,
    Freeze,
    Frozen,
    Give,
    Giving,
    Gone,
    GoneOver,
    Offer,
    Refused,
    Settled,
    Step,
    Taken,
    Taking,
)
from thalweg.overlay.protocol import (
    Address,
    Call,
    Deliver,
    Effect,
    Event,
    Init,
    Message,
    Persist,
    Receive,
    Send,
    SetTimer,
    TimerFired,
)

_encode = msgspec.msgpack.Encoder().encode
_decode_giving = msgspec.msgpack.Decoder(Giving).decode
_decode_taking = msgspec.msgpack.Decoder(Taking).decode
_MOST_OVER = 1_000  # a message that is later than so many moves would be a marvel
_OPEN = (Step.COPYING, Step.FREEZING, Step.FROZEN)


@dataclass(frozen=True, slots=True)
class Settings:
    again_us: int = 500_000  # between two tries of anything
    silent_for_us: int = 15_000_000  # a receiver that says nothing for so long does not get it


class Handover:
    name = "handover"
    messages: ClassVar[tuple[type[Message], ...]] = MESSAGES
    listens_to: ClassVar[tuple[str, ...]] = ()

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self._giving: dict[str, Giving] = {}
        self._taking: dict[str, Taking] = {}
        self._over: list[str] = []  # moves that this node has taken part in as a receiver
        self._heard_us: dict[str, int] = {}  # from the receiver of a move

    # --- what others of this node may read ---

    def giving(self) -> dict[str, Giving]:
        return dict(self._giving)

    def taking(self) -> dict[str, Taking]:
        return dict(self._taking)

    # --- events ---

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, Receive):
            return self._received(now_us, event.sender, event.message)
        if isinstance(event, Call):
            return self._asked(now_us, event.request)
        if isinstance(event, TimerFired):
            return [SetTimer("again", self._settings.again_us), *self._again(now_us)]
        if isinstance(event, Init):
            for key, value in sorted(event.persisted.items()):
                kind, _, move = key.partition(" ")
                if kind == "give":
                    self._giving[move] = _decode_giving(value)
                    self._heard_us[move] = now_us
                elif kind == "over":
                    self._over = msgspec.msgpack.decode(value, type=list[str])
                else:
                    self._taking[move] = _decode_taking(value)
            return [SetTimer("again", self._settings.again_us)]
        return []

    def _again(self, now_us: int) -> list[Effect]:
        effects: list[Effect] = []
        for giving in list(self._giving.values()):
            silent = now_us - self._heard_us.get(giving.move, now_us)
            if giving.step in _OPEN and silent > self._settings.silent_for_us:
                effects += self._keep(giving, f"{giving.to} has been silent for too long")
            else:
                effects += self._go_on(giving)
        for taking in list(self._taking.values()):
            effects += self._work(taking)
        return effects

    # --- the sender ---

    def _asked(self, now_us: int, request: object) -> list[Effect]:
        match request:
            case Give(move, fragment, to, epoch, way):
                if move in self._giving or any(
                    g.fragment == fragment and g.step is not Step.KEPT
                    for g in self._giving.values()
                ):
                    return []
                self._heard_us[move] = now_us
                step = Step.FREEZING if way == STOP else Step.COPYING
                return self._write(Giving(move, fragment, to, epoch, way, step))
            case Frozen(move, tau):
                giving = self._giving.get(move)
                if giving is None or giving.step is not Step.FREEZING:
                    return []
                self._heard_us[move] = now_us
                return self._write(_changed(giving, step=Step.FROZEN, tau=tau))
            case CannotGive(move, why):
                giving = self._giving.get(move)
                return [] if giving is None or giving.step not in _OPEN else self._keep(giving, why)
            case GoneOver(move):
                giving = self._giving.get(move)
                if giving is None or giving.step is not Step.GIVEN:
                    return []
                return self._write(_changed(giving, gone_over=True))
            case Gone(address):
                return self._without(address)
            case Fetched(move) | Adopted(move):
                return self._has(move, is_taken=isinstance(request, Adopted))
            case CannotTake(move, why):
                taking = self._taking.pop(move, None)
                if taking is None:
                    return []
                return [Persist(f"take {move}", None), Send(taking.sender, Refused(move, why))]
        return []

    def _without(self, address: Address) -> list[Effect]:
        """Nothing is to be heard of a node any more. What it has given and not decided about stays
        here: readers may have been told."""
        effects: list[Effect] = []
        for giving in [g for g in self._giving.values() if g.to == address]:
            if giving.step in _OPEN:
                effects += self._keep(giving, f"{address} is gone")
            effects += self._write(_changed(self._giving[giving.move], is_heard=True))
        for taking in [t for t in self._taking.values() if t.sender == address]:
            del self._taking[taking.move]
            effects += self._end(taking.move)
            if not taking.is_taken:
                effects.append(Deliver(Discard(taking.move, taking.fragment, taking.epoch)))
        return effects

    def _write(self, giving: Giving) -> list[Effect]:
        """Durable, then the next step; forgotten when everybody knows how it has ended."""
        key = f"give {giving.move}"
        if giving.is_heard and (giving.step is Step.KEPT or giving.gone_over):
            del self._giving[giving.move]
            self._heard_us.pop(giving.move, None)
            return [Persist(key, None)]
        self._giving[giving.move] = giving
        return [Persist(key, _encode(giving)), *self._go_on(giving)]

    def _go_on(self, giving: Giving) -> list[Effect]:
        move, fragment, to, epoch = giving.move, giving.fragment, giving.to, giving.epoch
        match giving.step:
            case Step.COPYING:
                return [Send(to, Offer(move, fragment, epoch))]
            case Step.FREEZING:
                return [Deliver(Freeze(move, fragment))]
            case Step.FROZEN:
                assert giving.tau is not None
                return [Send(to, Finish(move, fragment, epoch, giving.tau))]
            case Step.GIVEN:
                told: list[Effect] = [] if giving.gone_over else [Deliver(Ended(giving))]
                return told if giving.is_heard else [*told, Send(to, Settled(move))]
            case Step.KEPT:
                return [Deliver(Ended(giving)), Send(to, Drop(move))]

    def _keep(self, giving: Giving, why: str) -> list[Effect]:
        """The other decision: it stays."""
        return self._write(_changed(giving, step=Step.KEPT, why=why))

    def _received(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        match message:
            case Offer() | Finish() | Settled() | Drop():
                return self._told(sender, message)
            case Copied(move) | Taken(move) | Busy(move) | Refused(move) | Done(move):
                giving = self._giving.get(move)
                if giving is None or giving.to != sender:
                    # Of a move that was forgotten, or began anew by a late message.
                    is_over = isinstance(message, Refused | Done)
                    return [] if is_over else [Send(sender, Drop(move))]
                self._heard_us[move] = now_us
                return self._answered(giving, message)
        return []

    def _answered(self, giving: Giving, message: Message) -> list[Effect]:
        match message:
            case Copied() if giving.step is Step.COPYING:
                return self._write(_changed(giving, step=Step.FREEZING))
            case Taken() if giving.step is Step.FROZEN:
                return self._write(_changed(giving, step=Step.GIVEN))  # the decision
            case Refused(_, why) if giving.step in _OPEN:
                return self._keep(giving, why)
            case Done() if giving.step in (Step.GIVEN, Step.KEPT):
                return self._write(_changed(giving, is_heard=True))
        return []

    # --- the receiver ---

    def _told(self, sender: Address, message: Message) -> list[Effect]:
        match message:
            case Offer(move) | Finish(move) if move in self._over:
                return []  # late: who asked knows how it has ended
            case Offer(move, fragment, epoch):
                if move in self._taking:
                    return self._work(self._taking[move])
                return self._take(Taking(move, fragment, sender, epoch))
            case Finish(move, fragment, epoch, tau):
                known = self._taking.get(move) or Taking(move, fragment, sender, epoch)
                if known.tau == tau:
                    return self._work(known)
                return self._take(_begun(known, tau=tau))
            case Settled(move):
                self._taking.pop(move, None)
                return [*self._end(move), Send(sender, Done(move))]
            case Drop(move):
                # What was settled is not dropped, however late the message.
                taking = self._taking.pop(move, None)
                if taking is None:
                    return [*self._end(move), Send(sender, Done(move))]
                return [
                    *self._end(move),
                    Deliver(Discard(move, taking.fragment, taking.epoch)),
                    Send(sender, Done(move)),
                ]
        return []

    def _end(self, move: str) -> list[Effect]:
        if move in self._over:
            return []
        self._over = [*self._over, move][-_MOST_OVER:]
        return [Persist("over", _encode(self._over)), Persist(f"take {move}", None)]

    def _take(self, taking: Taking) -> list[Effect]:
        self._taking[taking.move] = taking
        return [Persist(f"take {taking.move}", _encode(taking)), *self._work(taking)]

    def _has(self, move: str, *, is_taken: bool) -> list[Effect]:
        taking = self._taking.get(move)
        if taking is None or (is_taken and taking.tau is None):
            return []
        return self._take(_begun(taking, is_copied=True, is_taken=is_taken or taking.is_taken))

    def _work(self, taking: Taking) -> list[Effect]:
        move, to = taking.move, taking.sender
        if taking.is_taken:
            return [Send(to, Taken(move))]
        if taking.is_copied and taking.tau is None:
            return [Send(to, Copied(move))]
        fetch = Fetch(move, taking.fragment, to, taking.epoch, taking.tau)
        return [Deliver(fetch), Send(to, Busy(move))]


def _changed(giving: Giving, **how: object) -> Giving:
    return msgspec.structs.replace(giving, **how)


def _begun(taking: Taking, **how: object) -> Taking:
    return msgspec.structs.replace(taking, **how)
