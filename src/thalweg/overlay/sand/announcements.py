"""What a coordinator says of a zone (SAND 4.2): to hosts, to the zones below, to the zone above.

All of it follows from what is known (`ZoneState`), and is said when it changes and again with each
renewal.
"""

from __future__ import annotations

from thalweg.overlay.protocol import Address, Effect, Send
from thalweg.overlay.sand.messages import (
    InvalidateMap,
    InvalidateSubtree,
    MapSubtree,
    Measure,
    OperatorMapped,
    OperatorRemapped,
)
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.sand.zone_mail import Members, ZoneMail
from thalweg.overlay.sand.zone_state import ZoneState
from thalweg.overlay.sand.zones import Boundary
from thalweg.placement.arrays import NONE

SAY_AGAIN = "said, and due to be said again"  # unlike anything that is said


class Saying:
    def __init__(self, mail: ZoneMail, members: Members, settings: SandSettings) -> None:
        self.silent: dict[Address, None] = {}  # hosts that did not answer, until they do
        self._mail = mail
        self._members = members
        self._settings = settings

    def _usable(self, address: Address) -> bool:
        return address not in self.silent and not self._members.is_down(address)

    def _settle(self, now_us: int, zone_state: ZoneState) -> list[Effect]:
        """Say whatever has changed by what has become known."""
        zone_state.replan(now_us, self._usable, self._settings.measure_within_us)
        return [
            *self._measure(zone_state),
            *self._place(now_us, zone_state),
            *self._tell_below(now_us, zone_state),
            *self._tell_above(now_us, zone_state),
        ]

    def _measure(self, zone_state: ZoneState) -> list[Effect]:
        query, zone = zone_state.zone.query, zone_state.zone.top
        found = zone_state.unmeasured(self._usable)
        return [
            Send(a, Measure(query, zone, targets))
            for a, targets in found.items()
            if self._is_news(zone_state, ("measure", a), targets)
        ]

    def _place(self, now_us: int, zone_state: ZoneState) -> list[Effect]:
        """OPERATOR_MAPPED to the places of all operators, INVALIDATE_MAP to those of before."""
        if zone_state.plan is None or not zone_state.is_mapped(now_us, self._settings.lease_us):
            return self._unmap(now_us, zone_state, {})
        stand = zone_state.stand()
        hosts = {operator.node: stand[operator.node] for operator in zone_state.zone.operators}
        effects = self._unmap(now_us, zone_state, hosts)
        takers = {i: stand[o.node] for o in zone_state.zone.operators for i in o.inputs}
        last = zone_state.word.taker if zone_state.word is not None else None
        for operator in zone_state.zone.operators:
            node, host = operator.node, hosts[operator.node]
            inputs = tuple((i, stand[i]) for i in operator.inputs)
            taker = takers.get(node, last)
            zone_state.hosts[node] = host
            if self._is_news(zone_state, ("host", node), (host, inputs, taker)):
                zone_state.unheard.setdefault(host, now_us)
                message = OperatorMapped(
                    zone_state.zone.query, zone_state.zone.top, node, inputs, taker, now_us
                )
                effects.append(Send(host, message))
        return effects

    def _unmap(
        self, now_us: int, zone_state: ZoneState, staying: dict[int, Address]
    ) -> list[Effect]:
        gone = {n: host for n, host in zone_state.hosts.items() if staying.get(n) != host}
        for node in gone:
            del zone_state.hosts[node]
            zone_state.said.pop(("host", node), None)
        zone_state.unheard = {
            a: us for a, us in zone_state.unheard.items() if a in staying.values()
        }
        query = zone_state.zone.query
        return [Send(host, InvalidateMap(query, node, now_us)) for node, host in gone.items()]

    def _tell_below(self, now_us: int, zone_state: ZoneState) -> list[Effect]:
        """OPERATOR_REMAPPED: for the time being where a child has to move, finally to all."""
        if zone_state.plan is None or not zone_state.is_mapped(now_us, self._settings.lease_us):
            return []
        stand = zone_state.stand()
        takers = {i: stand[o.node] for o in zone_state.zone.operators for i in o.inputs}
        effects: list[Effect] = []
        for child in zone_state.zone.boundary:
            node, place = child.node, stand[child.node]
            if not zone_state.is_final and place == zone_state.children[node].told.best:
                continue
            said = (place, takers[node], zone_state.is_final)
            if self._is_news(zone_state, ("word", node), said):
                word = OperatorRemapped(
                    zone_state.zone.query, node, self._mail.own, 0, *said, now_us
                )
                effects += self._to_child(now_us, child, word)
        return effects

    def _tell_above(self, now_us: int, zone_state: ZoneState) -> list[Effect]:
        """MAP to the zone above; or that the subtree can't stand any more, if it could before."""
        zone = zone_state.zone
        told = zone_state.tells
        if zone.above == NONE or (told is None and "map" not in zone_state.said):
            return []
        if not self._is_news(zone_state, "map", told):
            return []
        if told is None:
            del zone_state.said["map"]
        message = MapSubtree(zone.query, zone.above, self._mail.own, 0, zone.top, told, now_us)
        return self._mail.send(now_us, message)

    def _to_child(
        self, now_us: int, child: Boundary, message: OperatorRemapped | InvalidateSubtree
    ) -> list[Effect]:
        """A source is its own coordinator (4.2)."""
        if child.source is not None:
            return [Send(child.source, message)]
        return self._mail.send(now_us, message)

    @staticmethod
    def _is_news(zone_state: ZoneState, to: object, content: object) -> bool:
        if to in zone_state.said and zone_state.said[to] == content:
            return False
        zone_state.said[to] = content
        return True
