"""Placement of queries by zones and their coordinators, on the overlay.

Source: SAND (seed 001), section 4, with the messages of figure 4 (`messages`). The proxy gives each
zone of the tree to a coordinator, the peer that the zone's identifier belongs to, and visits the
sources. MAPs go up the tree: each coordinator places its zone from what its boundary children's
coordinators told, and tells the one above. Decisions go down: OPERATOR_REMAPPED to coordinators,
OPERATOR_MAPPED and INVALIDATE_MAP to hosts.

The source takes it that nothing fails. Here everything is leased, and said again:

    proxy        what it asks for, persisted             renews zones and visits
    zone         its coordinator, while the proxy asks   renews operators, words and MAPs
    operator     its host, while a coordinator asks
    MAP, word    while who said it says it again

Costs go up and locations go down, and each is a pure function of what is below or above. So there
is one outcome, whoever coordinates and in whatever order messages come; a coordinator that stops is
replaced by the next owner of the zone's identifier, which hears all it needs within a renewal. A
zone's first placement is for the time being: it lapses unless the zones above are placed too.

Rates and ways drift (2.3, 3: re-placement, periodically). Hosts tell with their answers what their
operators give, sources with their MAPs; ways are measured again, and of the last few measurements
the least counts. A zone stands where it stands while that costs little more than the best.

Promise: an operator is never run without a lease, and only for queries that somebody asked for.
Once quiet, of a query whose proxy and sources are there, every operator is mapped exactly once, and
its host is known to the coordinators of its neighbours; of any other query nothing is mapped, and
its proxy, if there is one, says what stands against it.
"""

from __future__ import annotations

from typing import ClassVar

from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import (
    Address,
    Call,
    Effect,
    Event,
    Init,
    Leave,
    Message,
    Receive,
    SetTimer,
    TimerFired,
)
from thalweg.overlay.routing import Routing
from thalweg.overlay.sand import messages as say
from thalweg.overlay.sand.coordinating import Coordinating
from thalweg.overlay.sand.hosting import Hosting
from thalweg.overlay.sand.proxying import Proxying
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.sand.zone_mail import Members, ZoneMail


class Sand:
    name = "sand"
    messages = say.MESSAGES
    listens_to: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, routing: Routing, members: Members, settings: SandSettings | None = None
    ) -> None:
        self.settings = settings or SandSettings()
        self._mail = ZoneMail(routing, members, self.settings)
        self.proxying = Proxying(self._mail)
        self.coordinating = Coordinating(self._mail, members, self.settings)
        self.hosting = Hosting(self._mail, members, self.settings)

    def step(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case Receive(sender, message):
                return self._received(now_us, sender, message)
            case TimerFired("renew"):
                return [SetTimer("renew", self.settings.renew_every_us), *self._renew(now_us)]
            case Call(say.PlaceQuery(query)):
                return self.proxying.place(now_us, query)
            case Call(say.DropQuery(query)):
                return self.proxying.drop(now_us, query)
            case Call(say.AskAgain(query)):
                return self.proxying.ask_again(now_us, query)
            case Call(say.Observe() as seen):
                return self.hosting.observe(seen)
            case Call(request):
                raise TypeError(f"sand can't {request!r}")
            case Init(address, seed, persisted):
                self._mail.own = address
                for encoded in persisted.values():
                    self.proxying.restore(encoded)
                return [SetTimer("renew", Generator(seed).below(self.settings.renew_every_us))]
            case Leave():
                return self.proxying.leave(now_us)
        return []

    def _renew(self, now_us: int) -> list[Effect]:
        self._mail.forget(now_us)
        return [
            *self.proxying.tend(now_us),
            *self.coordinating.tend(now_us),
            *self.hosting.tend(now_us),
        ]

    def _received(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        self.coordinating.silent.pop(sender, None)
        if isinstance(message, say.ForZone):
            self.coordinating.silent.pop(message.origin, None)
            return self._for_zone(now_us, message)
        match message:
            case say.Visit():
                if message.host == self._mail.own:
                    return self.hosting.visited(now_us, message)
                return self._mail.visit(message)
            case say.OperatorMapped():
                effects = self.hosting.mapped(now_us, sender, message)
                if len(effects) > 1:  # news, and not only an answer
                    effects += self.proxying.root_mapped(message.query, message.node)
                return effects
            case say.Hosted():
                return self.coordinating.hosted(sender, message)
            case say.InvalidateMap():
                return self.hosting.invalidated(sender, message)
            case say.Known():
                return self.proxying.known(now_us, sender, message)
            case say.Measure():
                return self.hosting.measure(now_us, sender, message)
            case say.Probe():
                return self.hosting.echo(sender, message)
            case say.Echo():
                return self.hosting.echoed(now_us, sender, message) if message.query else []
            case say.Measured():
                return self.coordinating.measured(now_us, sender, message)
        return []

    def _for_zone(self, now_us: int, message: say.ForZone) -> list[Effect]:
        """Here, for a source of this host or a zone of this node's; else on to where it belongs."""
        is_source = (message.query, message.zone) in self.hosting.sources
        if not is_source and (onward := self._mail.forward(message)):
            return onward
        match message:
            case say.AddSubtree():
                return self.coordinating.added(now_us, message)
            case say.MapSubtree():
                return self.coordinating.heard_map(now_us, message)
            case say.OperatorRemapped() if is_source:
                return self.hosting.remapped(now_us, message)
            case say.OperatorRemapped():
                return self.coordinating.remapped(now_us, message)
            case say.InvalidateSubtree() if is_source:
                return self.hosting.forsake(message.query, message.zone)
            case say.InvalidateSubtree():
                return self.coordinating.invalidated(now_us, message.query, message.zone)
        return []
