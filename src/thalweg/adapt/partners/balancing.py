"""Load of a node, and what it asks of its partners and gives to them (COSMOS 6.2.3 to 6.2.5).

Who owns a fragment, and how it gets to another node, is for those who make this whole:
`protocol.Partners` by leases from homes, `site.SitePartners` by the hand-over of live nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from thalweg.adapt.partners import messages as say
from thalweg.adapt.partners.circle import Circle
from thalweg.adapt.partners.low_pass import filtered
from thalweg.adapt.partners.requests import Wish, homing, spare, wish
from thalweg.adapt.partners.selection import ORDERS, Candidate, reason, victims
from thalweg.adapt.partners.settings import Settings
from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import Address, Effect, Message, Send, SetTimer

GATHER_PARTS = 20  # requests are gathered for a twentieth of a round, and the largest goes first

DRY_ROUNDS = 4  # before one who had nothing to give is asked again; each time twice as long
MOST_DRY_ROUNDS = 32


@dataclass(frozen=True, slots=True)
class Reserved:
    to: Address
    serial: int
    why: str
    until_us: int


class Balancing(ABC):
    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.own: Address = ""
        self.circle = Circle(self.settings)
        self._generator = Generator(0)
        self.rounds = 0
        self._serials = 0
        self._filtered: float | None = None  # ρ, before what comes and goes
        self._told: float | None = None  # as last broadcast
        self._asks: dict[Address, say.Ask] = {}
        self._budget = 0.0  # what may still go in this round
        self._reserved: dict[str, Reserved] = {}
        self._wish: tuple[int, Wish, int] | None = None  # serial, what, when
        self._coming: dict[str, tuple[float, int]] = {}  # consented: load, until when it may come
        self._heard_asks: dict[
            Address, int
        ] = {}  # the last serial: one that comes twice counts once
        self._dry: dict[Address, tuple[int, int]] = {}  # had nothing to give: until which round
        self._answered: tuple[int, tuple[str, ...]] = (-1, ())  # the last consent

    # --- what is here, and what others are there ---

    @abstractmethod
    def _others(self) -> list[Address]:
        """Those that may be partners and are up."""

    @abstractmethod
    def _factors(self) -> Mapping[Address, int]:
        """Neighbouring factors (6.2.1)."""

    @abstractmethod
    def _abroad(self) -> Mapping[Address, int]:
        """How many native fragments run where."""

    @abstractmethod
    def _load_of(self, fragment: str) -> float:
        """0 for one that is not here any more."""

    @abstractmethod
    def _candidates(self, now_us: int) -> Iterable[Candidate]:
        """Those that are here and may go now."""

    @abstractmethod
    def _offer(self, chosen: Candidate) -> say.Offered: ...

    @abstractmethod
    def _let_go(self, fragment: str, reserved: Reserved) -> list[Effect]:
        """The receiver has consented: have it moved."""

    # --- load (6.2.3) ---

    @property
    def load(self) -> float:
        """The filtered load, with what has been agreed to come and without what is to go."""
        coming = sum(load for load, _ in self._coming.values())
        going = sum(self._load_of(f) for f in self._reserved)
        return max(0.0, (self._filtered or 0.0) + coming - going)

    def _collect(self, load: float) -> None:
        """The load of a window is known."""
        before = self._filtered
        self._filtered = load if before is None else filtered(self.settings.alpha, before, load)

    def _tell_change(self) -> list[Effect]:
        """To partners, if it has changed by κ since they heard of it."""
        load, kappa = self.load, self.settings.kappa
        if self._told is None or not self._told / kappa < load < self._told * kappa:
            return self._broadcast()
        return []

    def _broadcast(self) -> list[Effect]:
        self._told = self.load
        return [Send(p, say.Load(self._told)) for p in self.circle.partners]

    # --- partners ---

    def _select_partners(self, now_us: int) -> list[Effect]:
        if not self.settings.max1:
            return []
        others, factors = self._others(), self._factors()
        ranked = sorted(factors, key=lambda n: (-factors[n], n))
        circle = self.circle
        return circle.select(now_us, self.load, ranked, others, self._generator)

    def _probe(self) -> list[Effect]:
        """Where all are overloaded (6.2.4); and now and then anyway, so that groups can mix."""
        s, circle = self.settings, self.circle
        loads = circle.known_loads().values()
        strangers = [a for a in self._others() if a not in circle.partners]
        if not s.max1 or not strangers:
            return []
        if self.load > s.overloaded and all(load > s.overloaded for load in loads):
            count = s.probes
        else:
            count = 1 if s.explore_rounds and self.rounds % s.explore_rounds == 0 else 0
        return [Send(a, say.Probe()) for a in self._generator.sample(strangers, count)]

    def _probed(self, now_us: int, sender: Address, load: float) -> list[Effect]:
        """One whose load is far from the own is worth being a partner."""
        kappa, circle = self.settings.kappa, self.circle
        if sender in circle.partners or sender in circle.proposed:
            return []
        if self.load / kappa < load < self.load * kappa:
            return []
        return [*circle.make_room(self.load), *circle.propose(now_us, self.load, sender)]

    # --- asking (Algorithm 6.2) ---

    def _balance(self, now_us: int) -> list[Effect]:
        self._budget = self.settings.exported * self.load
        self._reserved = {f: r for f, r in self._reserved.items() if now_us < r.until_us}
        self._coming = {f: c for f, c in self._coming.items() if now_us < c[1]}
        effects = [*self._broadcast(), *self._probe()]
        loads = self.circle.known_loads()
        s = self.settings
        dry = [p for p, (until, _) in self._dry.items() if self.rounds < until]
        wanted = wish(self.load, loads, s.kappa, relieve=s.relieve, dry=dry, least=s.least)
        if wanted is None and s.homing:
            abroad = {a: n for a, n in self._abroad().items() if a not in dry}
            wanted = homing(self.load, loads, abroad, s.kappa)
        self._wish = None
        if wanted is not None:
            self._serials += 1
            serial = now_us * 64 + self._serials % 64  # of this life: an old offer is not taken
            self._wish = (serial, wanted, now_us)
            effects.append(Send(wanted.partner, self._ask(serial, wanted)))
        return effects

    def _ask(self, serial: int, wanted: Wish) -> say.Ask:
        return say.Ask(serial, wanted.load, self.load, wanted.why == "home", wanted.why)

    # --- giving (6.2.5) ---

    def _asked_for_load(self, now_us: int, sender: Address, ask: say.Ask) -> list[Effect]:
        is_partner = sender in self.circle.partners
        is_new = ask.serial > self._heard_asks.get(sender, -1)
        if not is_new or not (is_partner or ask.native):
            return []
        self._heard_asks[sender] = ask.serial
        if is_partner:
            self.circle.hear(now_us, sender, ask.load)
        gathering, self._asks[sender] = bool(self._asks), ask
        return [] if gathering else [SetTimer("give", self.settings.round_us // GATHER_PARTS)]

    def _give(self, now_us: int) -> list[Effect]:
        """The largest request first, up to half of the load in a round."""
        asks = sorted(self._asks.items(), key=lambda a: (-a[1].amount, a[0]))
        self._asks = {}
        effects: list[Effect] = []
        for receiver, ask in asks:
            # The loads may have come nearer since it was asked.
            gap = (self.load - ask.load) / 2
            if ask.native:
                gap = spare(self.load, self.circle.known_loads(), self.settings.kappa)
            wanted = min(ask.amount, gap, self._budget)
            chosen = self._victims(now_us, receiver, wanted, ask)
            if not chosen:
                effects.append(Send(receiver, say.Offer(ask.serial, (), self.load)))
                continue
            until_us = now_us + 2 * self.settings.answer_us
            for fragment in chosen:
                why = self._reason(fragment, receiver, ask)
                self._reserved[fragment.name] = Reserved(receiver, ask.serial, why, until_us)
                self._budget -= fragment.load
            offered = tuple(self._offer(c) for c in chosen)
            effects.append(Send(receiver, say.Offer(ask.serial, offered, self.load)))
        return effects

    def _victims(
        self, now_us: int, receiver: Address, wanted: float, ask: say.Ask
    ) -> list[Candidate]:
        candidates = [
            c
            for c in self._candidates(now_us)
            if c.name not in self._reserved
            and (c.home == receiver or not ask.native)
            and self._is_for(c, receiver, ask)
        ]
        order = ORDERS[self.settings.order]
        return victims(candidates, self.own, receiver, wanted, order, exceed=not ask.native)

    def _is_for(self, fragment: Candidate, receiver: Address, ask: say.Ask) -> bool:
        """Whether there is nothing against its going there."""
        return True

    def _reason(self, fragment: Candidate, receiver: Address, ask: say.Ask) -> str:
        return reason(fragment, self.own, receiver)

    def _offered(self, now_us: int, sender: Address, offer: say.Offer) -> list[Effect]:
        """Consent once, while it is what was asked for in this round."""
        asked = self._wish
        if self._answered[0] == offer.serial:
            return [Send(sender, say.Consent(*self._answered))]
        if asked is None or (asked[0], asked[1].partner) != (offer.serial, sender):
            return [Send(sender, say.Consent(offer.serial, ()))]
        self._wish = None
        if not offer.fragments:
            wait = min(2 * self._dry.get(sender, (0, DRY_ROUNDS // 2))[1], MOST_DRY_ROUNDS)
            self._dry[sender] = (self.rounds + wait, wait)
            return []
        self._dry.pop(sender, None)
        until_us = now_us + 10 * self.settings.answer_us
        for offered in offer.fragments:
            self._coming[offered.fragment] = (offered.load, until_us)
        if sender in self.circle.partners:
            self.circle.hear(now_us, sender, offer.load)
        names = tuple(o.fragment for o in offer.fragments)
        self._answered = (offer.serial, names)
        return [Send(sender, say.Consent(offer.serial, names))]

    def _consented(self, now_us: int, sender: Address, consent: say.Consent) -> list[Effect]:
        effects: list[Effect] = []
        for name, reserved in list(self._reserved.items()):
            if (reserved.to, reserved.serial) != (sender, consent.serial):
                continue
            if name not in consent.fragments:
                del self._reserved[name]
            else:
                effects += self._let_go(name, reserved)
        return effects

    # --- among partners ---

    def _among_partners(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        match message:
            case say.Load(load):
                return self.circle.told(now_us, sender, load)
            case say.Propose(load):
                return self.circle.asked(now_us, sender, load, self.load)
            case say.Accept(load):
                effects = self.circle.accepted(now_us, sender, load)
                return [*effects, *self._select_partners(now_us)]
            case say.Reject():
                self.circle.rejected(sender)
                return self._select_partners(now_us)
            case say.Part():
                self.circle.drop(sender)
                return []
            case say.Probe():
                return [Send(sender, say.Probed(self.load))]
            case say.Probed(load):
                return self._probed(now_us, sender, load)
            case say.Ask():
                return self._asked_for_load(now_us, sender, message)
            case say.Offer():
                return self._offered(now_us, sender, message)
            case say.Consent():
                return self._consented(now_us, sender, message)
        return []
