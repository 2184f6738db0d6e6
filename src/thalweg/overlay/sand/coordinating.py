"""A coordinator's part (SAND 4.2): what it hears of its zones, and how long that holds.

What it then says is in `saying`. A coordinator that comes new to a zone catches up within a
renewal, and one that lost the zone falls silent.
"""

from __future__ import annotations

from thalweg.overlay.membership import Doubt
from thalweg.overlay.protocol import Address, Effect, Send, Tell
from thalweg.overlay.sand.announcements import SAY_AGAIN, Saying
from thalweg.overlay.sand.messages import (
    AddSubtree,
    Hosted,
    InvalidateSubtree,
    Known,
    MapSubtree,
    Measure,
    Measured,
    OperatorRemapped,
    Probe,
)
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.sand.view import pair
from thalweg.overlay.sand.zone_mail import Members, ZoneMail
from thalweg.overlay.sand.zone_state import Child, Word, ZoneState
from thalweg.placement.arrays import NONE

Named = tuple[str, int]  # query, zone


class Coordinating(Saying):
    def __init__(self, mail: ZoneMail, members: Members, settings: SandSettings) -> None:
        super().__init__(mail, members, settings)
        self.duties: dict[Named, ZoneState] = {}
        self._early: dict[Named, dict[int, tuple[int, MapSubtree]]] = {}  # child -> until, MAP

    def added(self, now_us: int, message: AddSubtree) -> list[Effect]:
        zone, lease_us = message.subtree, self._settings.lease_us
        key = (message.query, message.zone)
        if key not in self.duties:
            self.duties[key] = ZoneState(zone, message.origin, saving=self._settings.saving)
        zone_state = self.duties[key]
        zone_state.until_us = now_us + lease_us
        if zone.above == NONE:  # the root stands at the proxy, and nobody will ever move it
            zone_state.word = Word(
                message.origin, now_us, zone_state.until_us, message.origin, None, True
            )
        effects = self._settle(now_us, zone_state)
        for _, early in self._early.pop(key, {}).values():
            effects += self.heard_map(now_us, early)
        known = Known(*key, zone_state.lacks(), zone_state.final_stand())
        return [*effects, Send(message.origin, known)]

    def heard_map(self, now_us: int, message: MapSubtree) -> list[Effect]:
        key = (message.query, message.zone)
        zone_state = self.duties.get(key)
        if zone_state is None:  # it was faster than the zone, which the proxy sends another way
            until_us = now_us + self._settings.lease_us
            self._early.setdefault(key, {})[message.child] = (until_us, message)
            return []
        if message.child not in [b.node for b in zone_state.zone.boundary]:
            return []
        self._mail.heard(now_us, message.query, message.child, message.origin)
        known = zone_state.children.get(message.child)
        if known is not None and known.by == message.origin and known.stamp_us > message.stamp_us:
            return []
        if message.told is None:
            if known is not None and known.by == message.origin:
                del zone_state.children[message.child]
            return self._settle(now_us, zone_state)
        until_us = now_us + self._settings.lease_us
        zone_state.children[message.child] = Child(
            message.origin, message.stamp_us, until_us, message.told
        )
        zone_state.merge_views()
        return self._settle(now_us, zone_state)

    def remapped(self, now_us: int, message: OperatorRemapped) -> list[Effect]:
        """Backtracked placement: the zone above has decided where this one's top stands."""
        zone_state = self.duties.get((message.query, message.zone))
        if zone_state is None:
            return []
        self._mail.heard(now_us, message.query, zone_state.zone.above, message.origin)
        known = zone_state.word
        if known is not None and known.by == message.origin and known.stamp_us > message.stamp_us:
            return []
        until_us = now_us + self._settings.lease_us
        zone_state.word = Word(
            message.origin,
            message.stamp_us,
            until_us,
            message.location,
            message.taker,
            message.final,
        )
        if zone_state.plan is not None and not zone_state.plan.can_stand(message.location):
            zone_state.said["map"] = SAY_AGAIN  # the zone above goes by an old MAP
        return self._settle(now_us, zone_state)

    def measured(self, now_us: int, sender: Address, message: Measured) -> list[Effect]:
        zone_state = self.duties.get((message.query, message.zone))
        if zone_state is None:
            return []
        ends = pair(sender, message.target)
        zone_state.learn(ends, message.one_way_us, self._settings.samples)
        zone_state.measured[ends] = now_us
        if zone_state.plan is not None or zone_state.unmeasured(self._usable):
            return []  # what changes is taken up with the next renewal, all of it at once
        return self._settle(now_us, zone_state)

    def hosted(self, sender: Address, message: Hosted) -> list[Effect]:
        zone_state = self.duties.get((message.query, message.zone))
        if zone_state is not None:
            zone_state.unheard.pop(sender, None)
            if message.rate_bps is not None:
                zone_state.seen_bps[message.node] = message.rate_bps
        return []

    def invalidated(self, now_us: int, query: str, zone: int) -> list[Effect]:
        """The query has gone: so has all that was mapped here, and all below."""
        zone_state = self.duties.pop((query, zone), None)
        if zone_state is None:
            return []
        effects = self._unmap(now_us, zone_state, {})
        for child in zone_state.zone.boundary:
            gone = InvalidateSubtree(query, child.node, self._mail.own, 0)
            effects += self._to_child(now_us, child, gone)
        return effects

    # --- leases ---

    def tend(self, now_us: int) -> list[Effect]:
        effects: list[Effect] = []
        for key, zone_state in list(self.duties.items()):
            if zone_state.until_us <= now_us:
                del self.duties[key]  # silently: another may have it now, with the same hosts
                continue
            zone_state.expire(now_us)
            effects += self._doubt(now_us, zone_state)
            again = zone_state.to_remeasure(now_us, self._settings.remeasure_every_us)
            effects += [Send(a, Measure(*key, targets)) for a, targets in again.items()]
            zone_state.said = {"map": SAY_AGAIN} if "map" in zone_state.said else {}
            effects += self._settle(now_us, zone_state)
        for key, early in list(self._early.items()):
            if all(until_us <= now_us for until_us, _ in early.values()):
                del self._early[key]
        # Membership tells when those come back that it knows; the others are asked.
        silent = [a for a in self.silent if self.duties and not self._members.is_down(a)]
        self.silent = dict.fromkeys(silent)
        effects += [Send(a, Probe("", NONE, self._mail.own, now_us)) for a in silent]
        return effects

    def _doubt(self, now_us: int, zone_state: ZoneState) -> list[Effect]:
        """A host that has not answered for a lease is not to be used until it does."""
        limit_us = now_us - self._settings.lease_us
        late = [a for a, since_us in zone_state.unheard.items() if since_us <= limit_us]
        for address in late:
            del zone_state.unheard[address]
            self.silent[address] = None
        return [Tell("membership", Doubt(a)) for a in late]
