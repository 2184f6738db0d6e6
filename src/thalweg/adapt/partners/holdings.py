"""The owner's side: what this node runs, until when it may decide, and what is on its way out.

A fragment leaves in four steps, each repeated until it is answered:

    stop      say no more, drain, extract the state; nothing is written yet: a crash undoes it
    transfer  written down with its state and no longer run here; the home writes the next epoch
    ship      to the receiver, who writes it down, answers, and runs it once the home gives a lease
    done      the receiver has it (or the home says that the epoch is over): the state is dropped
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from thalweg.adapt.partners.messages import (
    Drop,
    Extracted,
    Fragment,
    GiveBack,
    Lease,
    Moved,
    Renew,
    Ship,
    Shipped,
    Stale,
    Start,
    Stop,
    Transfer,
    Transferred,
)
from thalweg.adapt.partners.settings import Settings
from thalweg.overlay.protocol import Address, Deliver, Effect, Persist, Send

NEVER_US = -(1 << 62)


class Kept(msgspec.Struct, frozen=True):
    """What the disk has of a fragment: run here, or on its way to another."""

    fragment: Fragment
    epoch: int
    upto: int
    state: bytes
    load: float
    state_bytes: float
    to: Address = ""
    shipping: bool = False  # the home knows
    why: str = ""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Kept).decode


@dataclass(slots=True)
class Held:
    fragment: Fragment
    epoch: int
    upto: int
    state: bytes
    load: float = 0.0
    state_bytes: float = 0.0
    since_us: int = NEVER_US  # when it came
    until_us: int = NEVER_US  # the lease
    stopping: tuple[Address, str] | None = None  # to whom, and why


class Holdings:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.own: Address = ""
        self.held: dict[str, Held] = {}
        self.leaving: dict[str, Kept] = {}
        self.over: dict[str, int] = {}  # fragment -> the last epoch that was left behind here
        self.places: dict[str, Address] = {}  # of neighbours that are not at home

    def start(self, now_us: int, own: Address, persisted: dict[str, bytes]) -> list[Effect]:
        self.own = own
        effects: list[Effect] = []
        for name, encoded in persisted.items():
            kept = _decode(encoded)
            if kept.to:
                self.leaving[name] = kept
            else:
                held = Held(kept.fragment, kept.epoch, kept.upto, kept.state, kept.load)
                held.state_bytes, held.since_us = kept.state_bytes, now_us
                self.held[name] = held
                effects.append(Deliver(Start(name, kept.epoch, kept.upto, kept.state)))
        return effects

    def start_over(self, persisted: dict[str, bytes]) -> None:
        self.over = {name: int(epoch) for name, epoch in persisted.items()}

    def has(self, name: str, epoch: int) -> bool:
        held, leaving = self.held.get(name), self.leaving.get(name)
        return any(h is not None and h.epoch == epoch for h in (held, leaving))

    def decides(self, name: str, now_us: int) -> bool:
        held = self.held.get(name)
        return held is not None and held.stopping is None and now_us < held.until_us

    def _write(self, held: Held) -> Persist:
        kept = Kept(held.fragment, held.epoch, held.upto, held.state, held.load, held.state_bytes)
        return Persist(f"held {held.fragment.name}", _encode(kept))

    def _end(self, name: str, epoch: int) -> list[Effect]:
        """Nothing of this epoch, or of an earlier one, starts here again."""
        self.over[name] = max(epoch, self.over.get(name, epoch))
        return [
            Persist(f"held {name}", None),
            Persist(f"over {name}", str(self.over[name]).encode()),
        ]

    # --- coming ---

    def adopt(self, now_us: int, held: Held, *, rests: bool = True) -> list[Effect]:
        name = held.fragment.name
        if rests:
            held.since_us = now_us
        effects: list[Effect] = []
        if name in self.held:
            effects.append(Deliver(Drop(name, self.held[name].epoch)))
        self.leaving.pop(name, None)  # an earlier epoch, which is over
        self.held[name] = held
        return [
            self._write(held),
            *effects,
            Deliver(Start(name, held.epoch, held.upto, held.state)),
            *self.renew(now_us, [name]),
        ]

    def knows(self, name: str, epoch: int) -> bool:
        """Whether this epoch, or a later one, was here before."""
        held, leaving = self.held.get(name), self.leaving.get(name)
        epochs = [held.epoch] if held else []
        epochs += [leaving.epoch] if leaving else []
        return max([*epochs, self.over.get(name, -1)]) >= epoch

    def shipped_here(self, now_us: int, giver: Address, m: Ship) -> list[Effect]:
        name = m.fragment.name
        answer = Send(giver, Shipped(name, m.epoch))
        if self.knows(name, m.epoch):
            return [answer]
        held = Held(m.fragment, m.epoch, m.upto, m.state, m.load, m.state_bytes)
        moved = Deliver(Moved(name, m.epoch, giver, m.load, m.why))
        return [*self.adopt(now_us, held), moved, answer]

    # --- leases ---

    def renew(self, now_us: int, names: list[str]) -> list[Effect]:
        """Ask the homes for leases, all fragments of a home together."""
        asked: dict[Address, list[tuple[str, int, int]]] = {}
        for name in names:
            held = self.held[name]
            asked.setdefault(held.fragment.home, []).append((name, held.epoch, held.upto))
        return [Send(home, Renew(tuple(e), now_us)) for home, e in asked.items()]

    def leased(self, home: Address, message: Lease) -> None:
        until_us = message.stamp_us + self.settings.lease_us
        told = dict(message.places)
        for name, epoch in message.entries:
            held = self.held.get(name)
            if held is None or held.epoch != epoch or held.fragment.home != home:
                continue
            if until_us >= held.until_us:
                held.until_us = until_us
                for other, its_home in held.fragment.neighbours:
                    self.places[other] = told.get(other, its_home)

    def stale(self, home: Address, message: Stale) -> list[Effect]:
        name, epoch = message.fragment, message.epoch
        held, leaving = self.held.get(name), self.leaving.get(name)
        if held is not None and held.epoch == epoch and held.fragment.home == home:
            del self.held[name]
            return [*self._end(name, epoch), Deliver(Drop(name, epoch))]
        if leaving is not None and leaving.epoch == epoch and leaving.fragment.home == home:
            del self.leaving[name]
            return self._end(name, epoch)
        return []

    # --- going ---

    def stop(self, name: str, to: Address, why: str) -> list[Effect]:
        held = self.held[name]
        held.stopping = (to, why)
        return [Deliver(Stop(name, held.epoch))]

    def extracted(self, request: Extracted) -> list[Effect]:
        held = self.held.get(request.fragment)
        if held is None or held.epoch != request.epoch or held.stopping is None:
            return []
        name, (to, why) = request.fragment, held.stopping
        del self.held[name]
        kept = Kept(
            held.fragment,
            held.epoch,
            request.upto,
            request.state,
            held.load,
            held.state_bytes,
            to,
            why=why,
        )
        return [*self._keep_leaving(kept), *self._push(kept)]

    def _keep_leaving(self, kept: Kept) -> list[Effect]:
        self.leaving[kept.fragment.name] = kept
        return [Persist(f"held {kept.fragment.name}", _encode(kept))]

    def _push(self, kept: Kept) -> list[Effect]:
        """The next step of one on its way, or the same once more."""
        name = kept.fragment.name
        transfer = Send(kept.fragment.home, Transfer(name, kept.epoch, kept.to, kept.upto))
        if not kept.shipping:
            return [transfer]
        return [self._ship(kept), transfer]  # the home tells if it is in vain

    def _ship(self, kept: Kept) -> Send:
        ship = Ship(
            kept.fragment,
            kept.epoch + 1,
            kept.upto,
            kept.state,
            kept.load,
            kept.state_bytes,
            kept.why,
        )
        return Send(kept.to, ship)

    def transferred(self, home: Address, message: Transferred) -> list[Effect]:
        kept = self.leaving.get(message.fragment)
        if kept is None or kept.epoch + 1 != message.epoch or kept.fragment.home != home:
            return []
        if kept.shipping:
            return []
        kept = msgspec.structs.replace(kept, shipping=True)
        return [*self._keep_leaving(kept), self._ship(kept)]

    def arrived(self, receiver: Address, message: Shipped) -> list[Effect]:
        kept = self.leaving.get(message.fragment)
        if kept is None or (kept.to, kept.epoch + 1) != (receiver, message.epoch):
            return []
        del self.leaving[message.fragment]
        return self._end(message.fragment, kept.epoch)

    def push_all(self) -> list[Effect]:
        return [effect for kept in self.leaving.values() for effect in self._push(kept)]

    def give_back(self) -> list[Effect]:
        """On leave: to the homes, as far as they are elsewhere."""
        return [
            Send(h.fragment.home, GiveBack(name, h.epoch, h.upto))
            for name, h in self.held.items()
            if h.fragment.home != self.own
        ]
