"""Partners: nodes of a site that balance their load by moving fragments.

Source: COSMOS (seed 000) 6.2: fragments, partners (Algorithm 6.1), load that is filtered and told
when it has changed by κ, requests by those who have little (Algorithm 6.2), data flow aware
selection, migration with state. What happens when messages or nodes are lost is added here, as the
source leaves it out (docs/fragments.md, docs/deviations.md).

Messages: see `messages`. Propose, Accept, Reject and Part make partners (`circle.py`), Load and
Probe tell loads, Ask, Offer and Consent agree on what moves, Transfer, Ship and Shipped move it
(`holdings.py`), Renew, Lease and Stale say who decides (`homes.py`).

Promise: at no time do two nodes decide for a fragment. A fragment whose home runs has an owner who
decides, once the network is quiet, and it starts at or below the last instant that was said. Once
the loads are steady they come within κ of the mean, as far as fragments are small enough, and no
fragment moves twice within `rest_rounds`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from thalweg.adapt.partners import messages as say
from thalweg.adapt.partners.balancing import Balancing, Reserved
from thalweg.adapt.partners.holdings import Held, Holdings
from thalweg.adapt.partners.homes import Homes, Taken
from thalweg.adapt.partners.low_pass import filtered
from thalweg.adapt.partners.selection import Candidate
from thalweg.adapt.partners.settings import Settings
from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Membership
from thalweg.overlay.protocol import (
    Address,
    Call,
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


class Partners(Balancing):
    name = "partners"
    messages: ClassVar[tuple[type[Message], ...]] = say.ALL
    listens_to: ClassVar[tuple[str, ...]] = ()

    def __init__(self, membership: Membership, settings: Settings | None = None) -> None:
        super().__init__(settings)
        self._members = membership
        self.homes, self.holdings = Homes(self.settings), Holdings(self.settings)

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, Receive):
            return self._receive(now_us, event.sender, event.message)
        if isinstance(event, TimerFired):
            return self._round(now_us) if event.key == "round" else self._give(now_us)
        if isinstance(event, Call):
            return self._called(now_us, event.request)
        if isinstance(event, Init):
            return self._init(now_us, event)
        if isinstance(event, Leave):
            parting: list[Effect] = [Send(p, say.Part()) for p in self.circle.partners]
            return [*self.holdings.give_back(), *parting]
        return []

    def _init(self, now_us: int, event: Init) -> list[Effect]:
        self.own, self._generator = event.address, Generator(event.seed)
        self.homes.start(now_us, self.own, _drawer(event.persisted, "home "))
        self.holdings.start_over(_drawer(event.persisted, "over "))
        effects = self.holdings.start(now_us, self.own, _drawer(event.persisted, "held "))
        return [*effects, SetTimer("round", 1 + event.seed % self.settings.round_us)]

    def _called(self, now_us: int, request: object) -> list[Effect]:
        if isinstance(request, say.Measured):
            return self._measured(request)
        if isinstance(request, say.Extracted):
            return self._extracted(request)
        if isinstance(request, say.Delegate):
            return self.homes.delegate(now_us, request)
        raise TypeError(f"partners can't {request!r}")

    def _round(self, now_us: int) -> list[Effect]:
        """Once in Δ: who is there, what is mine, what is on its way, and whether to ask."""
        effects: list[Effect] = [SetTimer("round", self.settings.round_us)]
        self.rounds += 1
        self.circle.expire(now_us)
        effects += self._run(now_us, *self.homes.overdue(now_us, self.holdings.has))
        effects += self.holdings.renew(now_us, list(self.holdings.held))
        effects += self.holdings.push_all()
        if self.rounds % self.settings.update_rounds == 0:
            self.circle.refused.clear()
            effects += self.homes.tell_all()
        effects += self._select_partners(now_us)
        return effects + self._balance(now_us)

    def _run(self, now_us: int, effects: list[Effect], taken: list[Taken]) -> list[Effect]:
        for t in taken:
            held = Held(t.fragment, t.epoch, t.upto, b"")
            effects += self.holdings.adopt(now_us, held, rests=not t.first)
        return effects

    def _receive(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        match message:
            case say.Renew():
                return self.homes.renew(now_us, sender, message)
            case say.Lease():
                self.holdings.leased(sender, message)
                return []
            case say.Stale():
                return self.holdings.stale(sender, message)
            case say.Located(entries):
                self.homes.places.update(entries)
                return []
            case say.Transfer():
                return self.homes.transfer(now_us, sender, message)
            case say.Transferred():
                return self.holdings.transferred(sender, message)
            case say.Ship():
                return self._shipped_here(now_us, sender, message)
            case say.Shipped():
                return self.holdings.arrived(sender, message)
            case say.GiveBack():
                return self._run(now_us, *self.homes.given_back(now_us, sender, message))
        return self._among_partners(now_us, sender, message)

    # --- what `Balancing` asks ---

    def _others(self) -> list[Address]:
        return self._members.up()

    def _factors(self) -> Mapping[Address, int]:
        return self.homes.neighbouring_factors()

    def _abroad(self) -> Mapping[Address, int]:
        return self.homes.abroad()

    def _load_of(self, fragment: str) -> float:
        held = self.holdings.held.get(fragment)
        return 0.0 if held is None else held.load

    def _candidates(self, now_us: int) -> Iterable[Candidate]:
        rested_us = now_us - self.settings.rest_rounds * self.settings.round_us
        places = self.holdings.places
        for name, held in self.holdings.held.items():
            is_leased = held.stopping is None and now_us < held.until_us
            if is_leased and held.since_us <= rested_us:
                at = tuple(places.get(n, home) for n, home in held.fragment.neighbours)
                home = held.fragment.home
                yield Candidate(name, held.load, held.state_bytes, home, at)

    def _offer(self, chosen: Candidate) -> say.Offered:
        return say.Offered(chosen.name, self.holdings.held[chosen.name].epoch, chosen.load)

    def _let_go(self, fragment: str, reserved: Reserved) -> list[Effect]:
        held = self.holdings.held.get(fragment)
        if held is None:
            del self._reserved[fragment]
        elif held.stopping is None:
            return self.holdings.stop(fragment, reserved.to, reserved.why)
        return []

    # --- measuring and moving (6.2.6) ---

    def _measured(self, request: say.Measured) -> list[Effect]:
        self._collect(request.load)
        for m in request.fragments:
            held = self.holdings.held.get(m.fragment)
            if held is not None:
                old = held.load
                held.load = filtered(self.settings.alpha, old, m.load) if old else m.load
                held.state_bytes, held.upto = m.state_bytes, max(held.upto, m.upto)
        return self._tell_change()

    def _extracted(self, request: say.Extracted) -> list[Effect]:
        held = self.holdings.held.get(request.fragment)
        effects = self.holdings.extracted(request)
        if effects and held is not None:
            self._reserved.pop(request.fragment, None)
            self._filtered = max(0.0, (self._filtered or 0.0) - held.load)
        return effects

    def _shipped_here(self, now_us: int, sender: Address, ship: say.Ship) -> list[Effect]:
        name = ship.fragment.name
        is_new = not self.holdings.knows(name, ship.epoch)
        self._coming.pop(name, None)
        if is_new:
            self._filtered = (self._filtered or 0.0) + ship.load
        return self.holdings.shipped_here(now_us, sender, ship)


def _drawer(persisted: Mapping[str, bytes], prefix: str) -> dict[str, bytes]:
    return {k.removeprefix(prefix): v for k, v in persisted.items() if k.startswith(prefix)}
