"""Letters to coordinators (SAND 4.1): to the peer that the zone's identifier belongs to.

The first goes hop by hop through the overlay. Whoever answers for a zone is written to directly
from then on; who gets a letter for a zone that is not its own sends it on.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from thalweg.overlay.protocol import Address, Effect, Send
from thalweg.overlay.routing import Routing, id_of
from thalweg.overlay.sand.messages import ForZone, Visit
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.sand.zones import zone_key

MOST_HOPS = 64  # tables that are being repaired may lead in circles


class Members(Protocol):
    def is_down(self, address: Address) -> bool: ...


class ZoneMail:
    def __init__(self, routing: Routing, members: Members, settings: SandSettings) -> None:
        self.own: Address = ""
        self._routing = routing
        self._members = members
        self._lease_us = settings.lease_us
        self._coordinators: dict[tuple[str, int], tuple[Address, int]] = {}  # -> who, heard when

    def heard(self, now_us: int, query: str, zone: int, sender: Address) -> None:
        """This node speaks for the zone."""
        self._coordinators[query, zone] = (sender, now_us)

    def coordinator(self, now_us: int, query: str, zone: int) -> Address | None:
        """Whoever spoke for it lately, and has not stopped since."""
        address, heard_us = self._coordinators.get((query, zone), ("", 0))
        is_late = now_us - heard_us >= self._lease_us
        return None if not address or is_late or self._members.is_down(address) else address

    def forget(self, now_us: int) -> None:
        self._coordinators = {
            zone: (address, heard_us)
            for zone, (address, heard_us) in self._coordinators.items()
            if now_us - heard_us < self._lease_us
        }

    def send(self, now_us: int, message: ForZone) -> list[Effect]:
        known = self.coordinator(now_us, message.query, message.zone)
        if known is not None:
            return [Send(known, message)]
        return self.forward(message) or [Send(self.own, message)]

    def forward(self, message: ForZone) -> list[Effect]:
        """Nearer to the zone's coordinator; nothing, if that is this node."""
        hop = self._routing.next_hop(zone_key(message.query, message.zone))
        if hop is None or message.hops >= MOST_HOPS:
            return []
        return [Send(hop, msgspec.structs.replace(message, hops=message.hops + 1))]

    def visit(self, message: Visit) -> list[Effect]:
        """Nearer to the source; the last step is direct, for it may not be in the overlay yet."""
        hop = self._routing.next_hop(id_of(message.host))
        if hop is None or len(message.path) >= MOST_HOPS:
            hop = message.host
        return [Send(hop, msgspec.structs.replace(message, path=(*message.path, self.own)))]
