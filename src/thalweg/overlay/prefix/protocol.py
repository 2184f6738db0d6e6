"""Prefix routing: a node reaches any key in a few hops, each a digit nearer, the first ones short.

Source: Tapestry (Zhao et al., 2004) and Pastry (Rowstron, Druschel, 2001), named by DHTJoin (seed
003) 4.3.4 and by SAND (seed 001) 6.1. Tables by digit, near nodes preferred, surrogate routing.

Messages: Hello (myself, and those of my table that fit yours), Welcome (the same, in answer). An
address that is only heard of is greeted first: whoever stands in a table has answered this node,
and the time of the answer is its distance. New acquaintances are greeted in turn, so a newcomer
fills its table by asking ever closer namesakes (Pastry's join), and is known to them by the same
messages. Now and then a random acquaintance is greeted again; nodes of one prefix so compare which
of its slots are empty, until they agree.

Reads membership for contacts, and drops whom it calls down; it doubts whom Hello does not reach.

Promise: a table holds only nodes that fit their slots. Once quiet, a slot is empty exactly if no
live node fits it; then every key has one owner, whichever node asks, within log_16 n + O(1) hops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Doubt, Down, Membership, Up
from thalweg.overlay.prefix.table import PrefixTable
from thalweg.overlay.protocol import (
    Address,
    CancelTimer,
    Effect,
    Event,
    Heard,
    Init,
    Message,
    Receive,
    Send,
    SetTimer,
    Tell,
    TimerFired,
)
from thalweg.overlay.routing import Part, Scope


class Hello(Message, frozen=True):
    stamp_us: int
    known: tuple[Address, ...]


class Welcome(Message, frozen=True):
    stamp_us: int
    known: tuple[Address, ...]


@dataclass(frozen=True, slots=True)
class PrefixSettings:
    greet_every_us: int = 1_000_000
    answer_within_us: int = 1_500_000
    ignore_for_us: int = 10_000_000  # hearsay about a node that did not answer

    def __post_init__(self) -> None:
        if min(self.greet_every_us, self.answer_within_us) < 1 or self.ignore_for_us < 0:
            raise ValueError("periods and times to wait must be above 0")


class Prefix:
    name = "prefix"
    messages: ClassVar[tuple[type[Message], ...]] = (Hello, Welcome)
    listens_to: ClassVar[tuple[str, ...]] = ("membership",)

    def __init__(self, membership: Membership, settings: PrefixSettings | None = None) -> None:
        self.settings = settings or PrefixSettings()
        self.table = PrefixTable("")
        self._membership = membership
        self._generator = Generator(0)
        self._greeted: dict[Address, int] = {}  # no answer yet -> tries
        self._ignored_until_us: dict[Address, int] = {}

    # --- what other protocols may read (overlay.routing.Routing) ---

    def next_hop(self, key: int) -> Address | None:
        return self.table.next_hop(key)

    def neighbours(self) -> Sequence[Address]:
        return [a for row in range(self.table.rows) for a in self.table.row(row)]

    def parts(self, scope: Scope | None) -> list[Part]:
        """By rows (DHTJoin 4.3.4): a node of row r looks after the rows beyond r of its own."""
        first = 0 if scope is None else scope
        return [(a, r + 1) for r in range(first, self.table.rows) for a in self.table.row(r)]

    def covers(self, wide: Scope | None, narrow: Scope) -> bool:
        return wide is None or wide <= narrow

    # --- events ---

    def step(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case Receive(sender, Hello(stamp_us, known)):
                answer = Send(sender, Welcome(stamp_us, self._known_to(sender)))
                return [answer, *self._heard_of(now_us, (sender, *known))]
            case Receive(sender, Welcome(stamp_us, known)):
                return self._welcomed(now_us, sender, stamp_us, known)
            case TimerFired(("answer", str(address))):
                return self._unanswered(now_us, address)
            case TimerFired("greet"):
                again = SetTimer("greet", self.settings.greet_every_us)
                return [again, *self._greet_somebody(now_us)]
            case Heard(_, Up(address)):
                self._ignored_until_us.pop(address, None)
                return self._heard_of(now_us, (address,))
            case Heard(_, Down(address)):
                self.table.drop(address)
            case Init(address, seed, _):
                self._generator = Generator(seed)
                self.table = PrefixTable(address)
                return [SetTimer("greet", self._generator.below(self.settings.greet_every_us))]
        return []

    def _greet_somebody(self, now_us: int) -> list[Effect]:
        """Somebody of a random row: deep rows have few nodes, and must be compared as often."""
        if not self.table.rows:
            return self._heard_of(now_us, self._membership.up())
        row = self._running(self.table.entries(self._generator.below(self.table.rows)))
        effects = self._greet(now_us, self._generator.choice(row)) if row else []
        # And somebody who would fit a full slot, and may be nearer than those in it.
        members = self._membership.up()
        stranger = self._generator.choice(members) if members else None
        if stranger is not None and stranger not in self.table:
            effects += self._greet(now_us, stranger)
        return effects

    def _running(self, entries: list[Address]) -> list[Address]:
        """These, but for those that membership first heard of when they were gone already.

        It never called them up, and so does not announce that they are down.
        """
        gone = [a for a in entries if self._membership.is_down(a)]
        for address in gone:
            self.table.drop(address)
        return [a for a in entries if a not in gone]

    def _heard_of(self, now_us: int, addresses: Iterable[Address]) -> list[Effect]:
        effects: list[Effect] = []
        for address in addresses:
            if address != self.table.address and self._is_wanted(now_us, address):
                effects += self._greet(now_us, address)
        return effects

    def _is_wanted(self, now_us: int, address: Address) -> bool:
        if address in self._greeted or self._membership.is_down(address):
            return False
        if self._ignored_until_us.get(address, now_us) > now_us:
            return False
        return self.table.has_room(address) and address not in self.table

    def _greet(self, now_us: int, address: Address) -> list[Effect]:
        self._greeted.setdefault(address, 0)
        return [
            Send(address, Hello(now_us, self._known_to(address))),
            SetTimer(("answer", address), self.settings.answer_within_us),
        ]

    def _known_to(self, address: Address) -> tuple[Address, ...]:
        return tuple(self.table.shared_with(address)) if address != self.table.address else ()

    def _welcomed(
        self, now_us: int, sender: Address, stamp_us: int, known: tuple[Address, ...]
    ) -> list[Effect]:
        self._greeted.pop(sender, None)
        self._ignored_until_us.pop(sender, None)
        if not self._membership.is_down(sender):
            self.table.put(sender, max(0, now_us - stamp_us))
        return [CancelTimer(("answer", sender)), *self._heard_of(now_us, known)]

    def _unanswered(self, now_us: int, address: Address) -> list[Effect]:
        """Once more, for a message may be lost; then it is taken out until it speaks itself."""
        tries = self._greeted.get(address, 0)
        if tries == 0:
            self._greeted[address] = 1
            return self._greet(now_us, address)
        self._greeted.pop(address, None)
        self.table.drop(address)
        self._ignored_until_us = {
            a: end for a, end in self._ignored_until_us.items() if end > now_us
        }
        self._ignored_until_us[address] = now_us + self.settings.ignore_for_us
        return [Tell("membership", Doubt(address))]
