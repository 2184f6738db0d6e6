"""A coordinator's part (SAND 4.2): what it hears of its zones, and how long that holds.

What it then says is in `saying`. A coordinator that comes new to a zone catches up within a
renewal, and one that lost the zone falls silent.
"""

from __future__ import annotations

from thalweg.overlay.membership import Doubt
from thalweg.overlay.protocol import Address, Effect, Send, Tell
from thalweg.overlay.sand.duty import Child, Duty, Word
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
from thalweg.overlay.sand.post import Members, Post
from thalweg.overlay.sand.saying import SAY_AGAIN, Saying
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.sand.view import pair
from thalweg.placement.arrays import NONE

Named = tuple[str, int]  # query, zone


class Coordinating(Saying):
    def __init__(self, post: Post, members: Members, settings: SandSettings) -> None:
        super().__init__(post, members, settings)
        self.duties: dict[Named, Duty] = {}
        self._early: dict[Named, dict[int, tuple[int, MapSubtree]]] = {}  # child -> until, MAP

    def added(self, now_us: int, message: AddSubtree) -> list[Effect]:
        zone, lease_us = message.subtree, self._settings.lease_us
        key = (message.query, message.zone)
        if key not in self.duties:
            self.duties[key] = Duty(zone, message.origin)
        duty = self.duties[key]
        duty.until_us = now_us + lease_us
        if zone.above == NONE:  # the root stands at the proxy, and nobody will ever move it
            duty.word = Word(message.origin, now_us, duty.until_us, message.origin, None, True)
        effects = self._settle(now_us, duty)
        for _, early in self._early.pop(key, {}).values():
            effects += self.heard_map(now_us, early)
        return [*effects, Send(message.origin, Known(*key, duty.lacks()))]

    def heard_map(self, now_us: int, message: MapSubtree) -> list[Effect]:
        key = (message.query, message.zone)
        duty = self.duties.get(key)
        if duty is None:  # it was faster than the zone, which the proxy sends another way
            until_us = now_us + self._settings.lease_us
            self._early.setdefault(key, {})[message.child] = (until_us, message)
            return []
        if message.child not in [b.node for b in duty.zone.boundary]:
            return []
        self._post.heard(now_us, message.query, message.child, message.origin)
        known = duty.children.get(message.child)
        if known is not None and known.by == message.origin and known.stamp_us > message.stamp_us:
            return []
        if message.told is None:
            if known is not None and known.by == message.origin:
                del duty.children[message.child]
            return self._settle(now_us, duty)
        until_us = now_us + self._settings.lease_us
        duty.children[message.child] = Child(
            message.origin, message.stamp_us, until_us, message.told
        )
        for a, b, one_way_us in message.told.view:
            duty.learn((a, b), one_way_us)
        return self._settle(now_us, duty)

    def remapped(self, now_us: int, message: OperatorRemapped) -> list[Effect]:
        """Backtracked placement: the zone above has decided where this one's top stands."""
        duty = self.duties.get((message.query, message.zone))
        if duty is None:
            return []
        self._post.heard(now_us, message.query, duty.zone.above, message.origin)
        known = duty.word
        if known is not None and known.by == message.origin and known.stamp_us > message.stamp_us:
            return []
        until_us = now_us + self._settings.lease_us
        duty.word = Word(
            message.origin,
            message.stamp_us,
            until_us,
            message.location,
            message.taker,
            message.final,
        )
        if duty.plan is not None and not duty.plan.can_stand(message.location):
            duty.said["map"] = SAY_AGAIN  # the zone above goes by an old MAP
        return self._settle(now_us, duty)

    def measured(self, now_us: int, sender: Address, message: Measured) -> list[Effect]:
        duty = self.duties.get((message.query, message.zone))
        if duty is None:
            return []
        ends = pair(sender, message.target)
        duty.learn(ends, message.one_way_us)
        duty.measured[ends] = now_us
        return [] if duty.unmeasured(self._usable) else self._settle(now_us, duty)

    def hosted(self, sender: Address, message: Hosted) -> list[Effect]:
        duty = self.duties.get((message.query, message.zone))
        if duty is not None:
            duty.unheard.pop(sender, None)
        return []

    def invalidated(self, now_us: int, query: str, zone: int) -> list[Effect]:
        """The query has gone: so has all that was mapped here, and all below."""
        duty = self.duties.pop((query, zone), None)
        if duty is None:
            return []
        effects = self._unmap(now_us, duty, {})
        for child in duty.zone.boundary:
            gone = InvalidateSubtree(query, child.node, self._post.own, 0)
            effects += self._to_child(now_us, child, gone)
        return effects

    # --- leases ---

    def tend(self, now_us: int) -> list[Effect]:
        effects: list[Effect] = []
        for key, duty in list(self.duties.items()):
            if duty.until_us <= now_us:
                del self.duties[key]  # silently: another may have it now, with the same hosts
                continue
            duty.expire(now_us)
            effects += self._doubt(now_us, duty)
            again = duty.to_remeasure(now_us, self._settings.remeasure_every_us)
            effects += [Send(a, Measure(*key, targets)) for a, targets in again.items()]
            duty.said = {"map": SAY_AGAIN} if "map" in duty.said else {}
            effects += self._settle(now_us, duty)
        for key, early in list(self._early.items()):
            if all(until_us <= now_us for until_us, _ in early.values()):
                del self._early[key]
        # Membership tells when those come back that it knows; the others are asked.
        silent = [a for a in self.silent if self.duties and not self._members.is_down(a)]
        self.silent = dict.fromkeys(silent)
        effects += [Send(a, Probe("", NONE, self._post.own, now_us)) for a in silent]
        return effects

    def _doubt(self, now_us: int, duty: Duty) -> list[Effect]:
        """A host that has not answered for a lease is not to be used until it does."""
        limit_us = now_us - self._settings.lease_us
        late = [a for a, since_us in duty.unheard.items() if since_us <= limit_us]
        for address in late:
            del duty.unheard[address]
            self.silent[address] = None
        return [Tell("membership", Doubt(a)) for a in late]
