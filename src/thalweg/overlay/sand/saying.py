"""What a coordinator says of a zone (SAND 4.2): to hosts, to the zones below, to the zone above.

All of it follows from what is known (`Duty`), and is said when it changes and again with each
renewal.
"""

from __future__ import annotations

from thalweg.overlay.protocol import Address, Effect, Send
from thalweg.overlay.sand.duty import Duty
from thalweg.overlay.sand.messages import (
    InvalidateMap,
    InvalidateSubtree,
    MapSubtree,
    Measure,
    OperatorMapped,
    OperatorRemapped,
)
from thalweg.overlay.sand.post import Members, Post
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.sand.zones import Boundary
from thalweg.placement.arrays import NONE

SAY_AGAIN = "said, and due to be said again"  # unlike anything that is said


class Saying:
    def __init__(self, post: Post, members: Members, settings: SandSettings) -> None:
        self.silent: dict[Address, None] = {}  # hosts that did not answer, until they do
        self._post = post
        self._members = members
        self._settings = settings

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
