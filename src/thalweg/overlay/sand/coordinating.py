"""A coordinator's part (SAND 4.2): collect MAPs, place the zone, map its operators, pass it on.

All that is said follows from what is known (`Duty`), and is said when it changes and again with
each renewal. So a coordinator that comes new to a zone catches up within a renewal, and one that
lost the zone falls silent.
"""

from __future__ import annotations

from thalweg.overlay.membership import Doubt
from thalweg.overlay.protocol import Address, Effect, Send, Tell
from thalweg.overlay.sand.duty import Child, Duty, Word
from thalweg.overlay.sand.messages import (
    AddSubtree,
    Hosted,
    InvalidateMap,
    InvalidateSubtree,
    Known,
    MapSubtree,
    Measure,
    Measured,
    OperatorMapped,
    OperatorRemapped,
    Probe,
)
from thalweg.overlay.sand.post import Members, Post
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.sand.view import pair
from thalweg.overlay.sand.zones import Boundary
from thalweg.placement.arrays import NONE

Named = tuple[str, int]  # query, zone
_SAY_AGAIN = "said, and due to be said again"  # unlike anything that is said


class Coordinating:
    def __init__(self, post: Post, members: Members, settings: SandSettings) -> None:
        self.duties: dict[Named, Duty] = {}
        self.silent: dict[Address, None] = {}  # hosts that did not answer, until they do
        self._post = post
        self._members = members
        self._settings = settings

    # --- what comes in ---

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
        return [*effects, Send(message.origin, Known(*key, duty.lacks()))]

    def heard_map(self, now_us: int, message: MapSubtree) -> list[Effect]:
        duty = self.duties.get((message.query, message.zone))
        if duty is None or message.child not in [b.node for b in duty.zone.boundary]:
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
            duty.view.setdefault((a, b), one_way_us)
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
            duty.said["map"] = _SAY_AGAIN  # the zone above goes by an old MAP
        return self._settle(now_us, duty)

    def measured(self, now_us: int, sender: Address, message: Measured) -> list[Effect]:
        duty = self.duties.get((message.query, message.zone))
        if duty is None:
            return []
        duty.view[pair(sender, message.target)] = message.one_way_us
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

    # --- what follows ---

    def tend(self, now_us: int) -> list[Effect]:
        effects: list[Effect] = []
        for key, duty in list(self.duties.items()):
            if duty.until_us <= now_us:
                del self.duties[key]  # silently: another may have it now, with the same hosts
                continue
            duty.expire(now_us)
            effects += self._doubt(now_us, duty)
            duty.said = {"map": _SAY_AGAIN} if "map" in duty.said else {}
            effects += self._settle(now_us, duty)
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

    def _usable(self, address: Address) -> bool:
        return address not in self.silent and not self._members.is_down(address)

    def _settle(self, now_us: int, duty: Duty) -> list[Effect]:
        """Say whatever has changed by what has become known."""
        duty.replan(now_us, self._usable, self._settings.measure_within_us)
        return [
            *self._measure(duty),
            *self._place(now_us, duty),
            *self._tell_below(now_us, duty),
            *self._tell_above(now_us, duty),
        ]

    def _measure(self, duty: Duty) -> list[Effect]:
        query, zone = duty.zone.query, duty.zone.top
        found = duty.unmeasured(self._usable)
        return [
            Send(a, Measure(query, zone, targets))
            for a, targets in found.items()
            if self._is_news(duty, ("measure", a), targets)
        ]

    def _place(self, now_us: int, duty: Duty) -> list[Effect]:
        """OPERATOR_MAPPED to the places of all operators, INVALIDATE_MAP to those of before."""
        if duty.plan is None or not duty.is_mapped(now_us, self._settings.lease_us):
            return self._unmap(now_us, duty, {})
        stand = duty.plan.stand(duty.top_location)
        hosts = {operator.node: stand[operator.node] for operator in duty.zone.operators}
        effects = self._unmap(now_us, duty, hosts)
        takers = {i: stand[o.node] for o in duty.zone.operators for i in o.inputs}
        last = duty.word.taker if duty.word is not None else None
        for operator in duty.zone.operators:
            node, host = operator.node, hosts[operator.node]
            inputs = tuple((i, stand[i]) for i in operator.inputs)
            taker = takers.get(node, last)
            duty.hosts[node] = host
            if self._is_news(duty, ("host", node), (host, inputs, taker)):
                duty.unheard.setdefault(host, now_us)
                message = OperatorMapped(
                    duty.zone.query, duty.zone.top, node, inputs, taker, now_us
                )
                effects.append(Send(host, message))
        return effects

    def _unmap(self, now_us: int, duty: Duty, staying: dict[int, Address]) -> list[Effect]:
        gone = {n: host for n, host in duty.hosts.items() if staying.get(n) != host}
        for node in gone:
            del duty.hosts[node]
            duty.said.pop(("host", node), None)
        duty.unheard = {a: us for a, us in duty.unheard.items() if a in staying.values()}
        query = duty.zone.query
        return [Send(host, InvalidateMap(query, node, now_us)) for node, host in gone.items()]

    def _tell_below(self, now_us: int, duty: Duty) -> list[Effect]:
        """OPERATOR_REMAPPED: for the time being where a child has to move, finally to all."""
        if duty.plan is None or not duty.is_mapped(now_us, self._settings.lease_us):
            return []
        stand = duty.plan.stand(duty.top_location)
        takers = {i: stand[o.node] for o in duty.zone.operators for i in o.inputs}
        effects: list[Effect] = []
        for child in duty.zone.boundary:
            node, place = child.node, stand[child.node]
            if not duty.is_final and place == duty.children[node].told.best:
                continue
            said = (place, takers[node], duty.is_final)
            if self._is_news(duty, ("word", node), said):
                word = OperatorRemapped(duty.zone.query, node, self._post.own, 0, *said, now_us)
                effects += self._to_child(now_us, child, word)
        return effects

    def _tell_above(self, now_us: int, duty: Duty) -> list[Effect]:
        """MAP to the zone above; or that the subtree can't stand any more, if it could before."""
        zone = duty.zone
        told = duty.tells
        if zone.above == NONE or (told is None and "map" not in duty.said):
            return []
        if not self._is_news(duty, "map", told):
            return []
        if told is None:
            del duty.said["map"]
        message = MapSubtree(zone.query, zone.above, self._post.own, 0, zone.top, told, now_us)
        return self._post.send(now_us, message)

    def _to_child(
        self, now_us: int, child: Boundary, message: OperatorRemapped | InvalidateSubtree
    ) -> list[Effect]:
        """A source is its own coordinator (4.2)."""
        if child.source is not None:
            return [Send(child.source, message)]
        return self._post.send(now_us, message)

    @staticmethod
    def _is_news(duty: Duty, to: object, content: object) -> bool:
        if to in duty.said and duty.said[to] == content:
            return False
        duty.said[to] = content
        return True
