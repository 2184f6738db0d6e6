"""Partners at live nodes of a site: who asks whom for what. The hand-over moves it.

Source: COSMOS (seed 000) 6.2, as `protocol.py`: partners, filtered loads, requests, selection. What
differs is who owns a fragment. Live nodes have the hand-over for that (`adapt/handover`), whose
sender is the one writer: so there are no leases here, nothing is written down, and what a node has
is what it observes. A giver whose partner consents delivers GiveAway; the fragment is on its way
while the hand-over says so (`Running.is_moving`), and has moved or stays when it ends.

Messages: those among partners (`messages`), and `Runs`: an owner tells a fragment's home once a
round what runs abroad, so that the home knows its neighbouring factors and can ask for its own.

Promise: one hand-over at a time for each fragment, and none within `rest_rounds` after it has moved
or was refused. Once loads are steady they come within κ of the mean, as far as fragments are small
enough. A node that stops says nothing and is no partner after four rounds; what it was asked for
stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from thalweg.adapt.partners import messages as say
from thalweg.adapt.partners.balancing import Balancing, Reserved
from thalweg.adapt.partners.holdings import NEVER_US
from thalweg.adapt.partners.low_pass import filtered
from thalweg.adapt.partners.objective import Ratio, foreseen, helps
from thalweg.adapt.partners.selection import Candidate, reason
from thalweg.adapt.partners.settings import Settings
from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import (
    Address,
    Call,
    Deliver,
    Effect,
    Event,
    Init,
    Leave,
    Message,
    Receive,
    Send,
    SetTimer,
    TimerFired,
)

SETTLE_ROUNDS = 2  # before a fragment that has just begun may go: its load is not known yet
ABROAD_ROUNDS = 4  # without word from its owner a native fragment is somewhere

ASKS = {
    "low": "it has less than the mean of its partners by κ",
    "high": "the giver has more than the mean by κ",
    "home": "it wants its own fragments back",
}


Entries = tuple[tuple[str, tuple[Address, ...]], ...]  # fragments, and where neighbours run


class Runs(Message, frozen=True):
    """Owner to home: native fragments of yours run here; with where their neighbours run."""

    entries: Entries


AMONG_PARTNERS: tuple[type[Message], ...] = (
    say.Propose,
    say.Accept,
    say.Reject,
    say.Part,
    say.Load,
    say.Probe,
    say.Probed,
    say.Ask,
    say.Offer,
    say.Consent,
    Runs,
)


# --- requests ---


class Running(msgspec.Struct, frozen=True):
    """A fragment that this node computes for others, over the last window."""

    name: str
    load: float
    state_bytes: float
    home: Address
    neighbours_at: tuple[Address, ...] = ()  # live, their homes are known to their owners only
    ratio: Ratio | None = None  # None: it has said nothing yet
    is_moving: bool = False  # a hand-over has it
    has_moved: bool = False  # it has come from another node


class Observed(msgspec.Struct, frozen=True):
    """A window τ is over: the whole load, what can't move included; the nodes that may be partners;
    the worst PR here, and what a hop takes."""

    load: float
    fragments: tuple[Running, ...] = ()
    peers: tuple[Address, ...] = ()
    pr_max: float = 0.0
    hop_s: float = 0.0


class Stays(msgspec.Struct, frozen=True):
    """It can't go after all: nobody need ask for it again soon."""

    fragment: str


# --- deliveries ---


class GiveAway(msgspec.Struct, frozen=True):
    """Have it moved there; `asker` is the one who asked, and gets it."""

    fragment: str
    asker: Address
    why: str


@dataclass(slots=True)
class Here:
    running: Running
    load: float
    since_us: int  # when it came


class SitePartners(Balancing):
    name = "partners"
    messages: ClassVar[tuple[type[Message], ...]] = AMONG_PARTNERS
    listens_to: ClassVar[tuple[str, ...]] = ()

    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__(settings)
        self.here: dict[str, Here] | None = None  # None: nothing was observed in this life
        self.peers: tuple[Address, ...] = ()
        self.pr_max = self._hop_s = 0.0
        self._natives: dict[Address, tuple[int, Entries]] = {}  # in which round owners told them

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, Receive):
            return self._receive(now_us, event.sender, event.message)
        if isinstance(event, TimerFired):
            return self._round(now_us) if event.key == "round" else self._give(now_us)
        if isinstance(event, Call):
            return self._called(now_us, event.request)
        if isinstance(event, Init):
            self.own, self._generator = event.address, Generator(event.seed)
            return [SetTimer("round", 1 + event.seed % self.settings.round_us)]
        if isinstance(event, Leave):
            return [Send(p, say.Part()) for p in self.circle.partners]
        return []

    def _called(self, now_us: int, request: object) -> list[Effect]:
        if isinstance(request, Observed):
            return self._observed(now_us, request)
        if isinstance(request, Stays):
            self._reserved.pop(request.fragment, None)
            if (found := self._here.get(request.fragment)) is not None:
                found.since_us = now_us
            return []
        raise TypeError(f"partners of a site can't {request!r}")

    def _round(self, now_us: int) -> list[Effect]:
        effects: list[Effect] = [SetTimer("round", self.settings.round_us)]
        if self.here is None:
            return effects  # nobody knows what there is to give yet
        self.rounds += 1
        self.circle.expire(now_us)
        if self.rounds % self.settings.update_rounds == 0:
            self.circle.refused.clear()
        effects += self._tell_homes()
        effects += self._select_partners(now_us)
        return effects + self._balance(now_us)

    def _receive(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        if isinstance(message, Runs):
            self._natives[sender] = self.rounds, message.entries
            return []
        return self._among_partners(now_us, sender, message)

    # --- what is here ---

    @property
    def _here(self) -> dict[str, Here]:
        return self.here or {}

    def _observed(self, now_us: int, told: Observed) -> list[Effect]:
        self.peers = tuple(p for p in told.peers if p != self.own)
        self.pr_max, self._hop_s = told.pr_max, told.hop_s
        for other in self.circle.partners:
            if other not in self.peers:
                self.circle.drop(other)
        known, is_first = self._here, self.here is None
        for name in [n for n in known if n not in {f.name for f in told.fragments}]:
            self._gone(name)
        self._collect(told.load)
        found = {f.name: self._seen(now_us, f, is_first=is_first) for f in told.fragments}
        self.here = found
        return self._tell_change()

    def _gone(self, name: str) -> None:
        """Given away or dropped: so is its load, which the filter would remember."""
        self._reserved.pop(name, None)
        self._filtered = max(0.0, (self._filtered or 0.0) - self._here[name].load)

    def _seen(self, now_us: int, told: Running, *, is_first: bool) -> Here:
        before, s = self._here.get(told.name), self.settings
        if before is None:
            coming = self._coming.pop(told.name, None)
            load = told.load if coming is None else coming[0]
            if coming is not None:
                self._filtered = (self._filtered or 0.0) + load
            rests = is_first or told.has_moved or coming is not None
            settles_us = (s.rest_rounds - SETTLE_ROUNDS) * s.round_us
            return Here(told, load, now_us if rests else now_us - max(0, settles_us))
        if before.running.is_moving and not told.is_moving:
            before.since_us = now_us  # it was to go, and stays
        if told.is_moving and told.name in self._reserved:
            del self._reserved[told.name]
        load = filtered(s.alpha, before.load, told.load) if before.load else told.load
        return Here(told, load, before.since_us)

    @property
    def load(self) -> float:
        """As `Balancing.load`, without what is on its way out."""
        leaving = (h.load for h in self._here.values() if h.running.is_moving)
        return max(0.0, super().load - sum(leaving))

    # --- what `Balancing` asks ---

    def _others(self) -> list[Address]:
        return list(self.peers)

    def _tell_homes(self) -> list[Effect]:
        told: dict[Address, list[tuple[str, tuple[Address, ...]]]] = {}
        for name, found in self._here.items():
            running = found.running
            if running.home != self.own and running.home in self.peers:
                told.setdefault(running.home, []).append((name, running.neighbours_at))
        return [Send(home, Runs(tuple(entries))) for home, entries in told.items()]

    def _abroad_now(self) -> dict[Address, Entries]:
        since = self.rounds - ABROAD_ROUNDS
        return {a: e for a, (heard, e) in self._natives.items() if heard >= since}

    def _factors(self) -> Mapping[Address, int]:
        found: dict[Address, int] = {}
        native = [h.running for h in self._here.values() if h.running.home == self.own]
        near = [r.neighbours_at for r in native]
        near += [at for entries in self._abroad_now().values() for _, at in entries]
        for other in (a for at in near for a in at if a != self.own):
            found[other] = found.get(other, 0) + 1
        return found

    def _abroad(self) -> Mapping[Address, int]:
        return {a: len(e) for a, e in self._abroad_now().items() if e and a in self.peers}

    def _load_of(self, fragment: str) -> float:
        found = self._here.get(fragment)
        return 0.0 if found is None else found.load

    def _candidates(self, now_us: int) -> Iterable[Candidate]:
        rested_us = now_us - self.settings.rest_rounds * self.settings.round_us
        for name, h in self._here.items():
            if not h.running.is_moving and h.since_us <= rested_us:
                r = h.running
                yield Candidate(name, h.load, r.state_bytes, r.home, r.neighbours_at)

    def _offer(self, chosen: Candidate) -> say.Offered:
        return say.Offered(chosen.name, 0, chosen.load)

    def _let_go(self, fragment: str, reserved: Reserved) -> list[Effect]:
        """It stays reserved until the hand-over has it, or somebody says why it stays."""
        if reserved.until_us == _HANDED_US:
            return []  # the consent came twice
        if fragment not in self._here:
            del self._reserved[fragment]
            return []
        self._reserved[fragment] = Reserved(reserved.to, reserved.serial, reserved.why, _HANDED_US)
        return [Deliver(GiveAway(fragment, reserved.to, reserved.why))]

    # --- the objective (6.1) ---

    def _foreseen(self, fragment: Candidate, receiver: Address, ask: say.Ask) -> Ratio | None:
        ratio = self._here[fragment.name].running.ratio
        if ratio is None:
            return None
        there, here = receiver in fragment.neighbours_at, self.own in fragment.neighbours_at
        more = int(here) - int(there)
        return foreseen(ratio, self.load, ask.load + fragment.load, more, self._hop_s)

    def _is_for(self, fragment: Candidate, receiver: Address, ask: say.Ask) -> bool:
        after, before = self._foreseen(fragment, receiver, ask), None
        if after is not None:
            before = self._here[fragment.name].running.ratio
        return after is None or before is None or helps(before, after, self.pr_max)

    def _reason(self, fragment: Candidate, receiver: Address, ask: say.Ask) -> str:
        """Who asked for what, and why this."""
        asked = f"asked for {ask.amount:.2f} of a node's time: {ASKS.get(ask.why, ask.why)}"
        loads = f"the giver has {self.load:.2f}, it has {ask.load:.2f}, this is {fragment.load:.2f}"
        told = [asked, loads, reason(fragment, self.own, receiver)]
        after, before = self._foreseen(fragment, receiver, ask), None
        if after is not None and (before := self._here[fragment.name].running.ratio) is not None:
            told.append(
                f"PR {before.pr:.3g} = {before.ppr:.3g} + {before.cpr:.3g}, foreseen "
                f"{after.pr:.3g} = {after.ppr:.3g} + {after.cpr:.3g}"
            )
        return "; ".join(told)


_HANDED_US = -NEVER_US  # a reservation without an end
