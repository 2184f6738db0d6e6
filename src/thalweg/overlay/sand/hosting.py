"""A host's part: operators that were mapped here, sources that stand here, and measuring.

Everything is held on a lease that its coordinator renews. A host believes the coordinator that
spoke last: where two speak for one zone, because the overlay is changing, the one that the proxy no
longer asks falls silent.
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.overlay.protocol import Address, Deliver, Effect, Send
from thalweg.overlay.sand.messages import (
    Echo,
    Feed,
    Hosted,
    InvalidateMap,
    Mapped,
    MapSubtree,
    Measure,
    Measured,
    Observe,
    OperatorMapped,
    OperatorRemapped,
    Probe,
    Unmapped,
    Visit,
)
from thalweg.overlay.sand.planning import told_of_source
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.sand.zone_mail import Members, ZoneMail

Named = tuple[str, int]  # query, node


@dataclass(frozen=True, slots=True)
class Running:
    by: Address
    stamp_us: int
    until_us: int
    inputs: tuple[tuple[int, Address], ...]
    taker: Address | None


@dataclass(slots=True)
class SourceState:
    """A source at this host."""

    above: int
    until_us: int
    candidates: tuple[Address, ...]
    by: Address = ""
    stamp_us: int = 0
    fed_until_us: int = 0
    taker: Address | None = None


class Hosting:
    def __init__(self, mail: ZoneMail, members: Members, settings: SandSettings) -> None:
        self.running: dict[Named, Running] = {}
        self.sources: dict[Named, SourceState] = {}
        self.rates_bps: dict[Named, float] = {}  # as measured here, of what runs or starts here
        self._mail = mail
        self._members = members
        self._lease_us = settings.lease_us

    # --- operators ---

    def mapped(self, now_us: int, sender: Address, message: OperatorMapped) -> list[Effect]:
        key = (message.query, message.node)
        known = self.running.get(key)
        if known is not None and known.by == sender and known.stamp_us > message.stamp_us:
            return []
        until_us = now_us + self._lease_us
        new = Running(sender, message.stamp_us, until_us, message.inputs, message.taker)
        self.running[key] = new
        answer = Hosted(message.query, message.zone, message.node, self.rates_bps.get(key))
        effects: list[Effect] = [Send(sender, answer)]
        if known is None or (known.inputs, known.taker) != (new.inputs, new.taker):
            effects.append(Deliver(Mapped(*key, new.inputs, new.taker)))
        return effects

    def invalidated(self, sender: Address, message: InvalidateMap) -> list[Effect]:
        """Only by the coordinator that mapped it: another may have mapped it here since."""
        key = (message.query, message.node)
        known = self.running.get(key)
        if known is None or known.by != sender or known.stamp_us > message.stamp_us:
            return []
        del self.running[key]
        self.rates_bps.pop(key, None)
        return [Deliver(Unmapped(*key))]

    # --- sources ---

    def visited(self, now_us: int, message: Visit) -> list[Effect]:
        """A source forwards MAP to the zone above (4.2), with the peers met on the way (4.4)."""
        key = (message.query, message.source)
        met = tuple(a for a in message.path[1:] if a != self._mail.own)
        source = self.sources.get(key)
        if source is None:
            source = self.sources[key] = SourceState(message.above, 0, met)
        elif any(self._members.is_down(a) for a in source.candidates):
            source.candidates = met  # routes change; plans should not, while the old peers live
        source.until_us = now_us + self._lease_us
        told = told_of_source(self._mail.own, source.candidates, self.rates_bps.get(key))
        above = MapSubtree(
            message.query, message.above, self._mail.own, 0, message.source, told, now_us
        )
        return self._mail.send(now_us, above)

    def remapped(self, now_us: int, message: OperatorRemapped) -> list[Effect]:
        """The coordinator above says who takes the stream."""
        source = self.sources[message.query, message.zone]
        if source.by == message.origin and source.stamp_us > message.stamp_us:
            return []
        self._mail.heard(now_us, message.query, source.above, message.origin)
        source.by, source.stamp_us = message.origin, message.stamp_us
        source.fed_until_us = now_us + self._lease_us if message.final else 0
        return self._feed(message.query, message.zone, message.taker if message.final else None)

    def forsake(self, query: str, node: int) -> list[Effect]:
        effects = self._feed(query, node, None)
        del self.sources[query, node]
        self.rates_bps.pop((query, node), None)
        return effects

    def _feed(self, query: str, node: int, taker: Address | None) -> list[Effect]:
        source = self.sources[query, node]
        if source.taker == taker:
            return []
        source.taker = taker
        return [Deliver(Feed(query, node, taker))]

    # --- leases ---

    def tend(self, now_us: int) -> list[Effect]:
        effects: list[Effect] = []
        for key in [k for k, r in self.running.items() if r.until_us <= now_us]:
            del self.running[key]
            self.rates_bps.pop(key, None)
            effects.append(Deliver(Unmapped(*key)))
        for (query, node), source in list(self.sources.items()):
            if source.until_us <= now_us:
                effects += self.forsake(query, node)
            elif source.fed_until_us <= now_us:
                effects += self._feed(query, node, None)
        return effects

    # --- rates: they go along with what is said again anyway ---

    def observe(self, message: Observe) -> list[Effect]:
        key = (message.query, message.node)
        if key in self.running or key in self.sources:  # it may have moved since it was measured
            self.rates_bps[key] = message.rate_bps
        return []

    # --- measuring: nothing is remembered, so nothing can be wrong for long ---

    def measure(self, now_us: int, sender: Address, message: Measure) -> list[Effect]:
        probe = Probe(message.query, message.zone, sender, now_us)
        return [Send(target, probe) for target in message.targets]

    def echo(self, sender: Address, message: Probe) -> list[Effect]:
        same = Echo(message.query, message.zone, message.asker, message.stamp_us)
        return [Send(sender, same)]

    def echoed(self, now_us: int, sender: Address, message: Echo) -> list[Effect]:
        round_trip_us = now_us - message.stamp_us
        if round_trip_us < 0:  # the clock was set back meanwhile
            return []
        found = Measured(message.query, message.zone, sender, round_trip_us // 2)
        return [Send(message.asker, found)]
