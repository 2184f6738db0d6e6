"""The proxy's part (SAND 4.2, coordinator initialisation): who asks for a query keeps asking.

What the proxy wants is the only thing that survives a restart; all else in the network is leased,
and lives on what the proxy says again.
"""

from __future__ import annotations

import msgspec

from thalweg.overlay.protocol import Address, Deliver, Effect, Persist
from thalweg.overlay.sand.messages import (
    AddSubtree,
    InvalidateSubtree,
    Known,
    Placed,
    Refused,
    Stands,
    Visit,
    Waiting,
)
from thalweg.overlay.sand.query import TreeQuery
from thalweg.overlay.sand.zone_mail import ZoneMail
from thalweg.overlay.sand.zones import Zone, cut
from thalweg.placement.sand.tree import TreeError

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(TreeQuery).decode


class Proxying:
    def __init__(self, mail: ZoneMail) -> None:
        self.queries: dict[str, TreeQuery] = {}
        self.lacks: dict[str, dict[int, str]] = {}  # query -> zone -> what stands against it
        self.stands: dict[str, Stands] = {}  # as it was last told
        self._zones: dict[str, tuple[Zone, ...]] = {}
        self._heard: dict[
            str, dict[int, Known]
        ] = {}  # query -> zone -> its coordinator's last word
        self._by: dict[tuple[str, int], Address] = {}
        self._mail = mail

    def restore(self, encoded: bytes) -> None:
        query = _decode(encoded)
        self._take(query, cut(query))

    def place(self, now_us: int, query: TreeQuery) -> list[Effect]:
        if query.name in self.queries:
            return [Deliver(Refused(query.name, "there is a query of this name; choose another"))]
        try:
            zones = cut(query)
        except TreeError as error:
            return [Deliver(Refused(query.name, str(error)))]
        if query.proxy != self._mail.own:
            why = f"its proxy is {query.proxy}, and this is {self._mail.own}: ask there"
            return [Deliver(Refused(query.name, why))]
        self._take(query, zones)
        return [Persist(query.name, _encode(query)), *self._ask(now_us, query)]

    def drop(self, now_us: int, name: str) -> list[Effect]:
        query = self.queries.pop(name, None)
        if query is None:
            return [Deliver(Refused(name, "this node asks for no such query"))]
        for zone in self._zones[name]:
            self._by.pop((name, zone.top), None)
        del self._zones[name], self.lacks[name], self._heard[name]
        self.stands.pop(name, None)
        gone = InvalidateSubtree(name, query.root, self._mail.own, 0)
        return [Persist(name, None), *self._mail.send(now_us, gone)]

    def ask_again(self, now_us: int, name: str) -> list[Effect]:
        query = self.queries.get(name)
        return [] if query is None else self._ask(now_us, query)

    def tend(self, now_us: int) -> list[Effect]:
        return [e for query in self.queries.values() for e in self._ask(now_us, query)]

    def leave(self, now_us: int) -> list[Effect]:
        """Who goes for good asks for nothing."""
        return [e for name in list(self.queries) for e in self.drop(now_us, name)]

    def _ask(self, now_us: int, query: TreeQuery) -> list[Effect]:
        """Both steps of the initialisation: zones to their coordinators, then the sources."""
        effects: list[Effect] = []
        for zone in self._zones[query.name]:
            message = AddSubtree(query.name, zone.top, self._mail.own, 0, zone)
            effects += self._mail.send(now_us, message)
        for zone in self._zones[query.name]:
            for child in zone.boundary:
                if child.source is not None:
                    visit = Visit(query.name, child.node, child.source, zone.top, ())
                    effects += self._mail.visit(visit)
        return effects

    def known(self, now_us: int, sender: Address, message: Known) -> list[Effect]:
        if message.query not in self.queries:
            return []
        self._mail.heard(now_us, message.query, message.zone, sender)
        lacks = self.lacks[message.query]
        before = lacks.pop(message.zone, "")
        if message.lacks:
            lacks[message.zone] = message.lacks
        self._heard[message.query][message.zone] = message
        self._by[message.query, message.zone] = sender
        effects = self._stands(message.query)
        if message.lacks not in ("", before):
            effects.append(Deliver(Waiting(message.query, message.lacks)))
        return effects

    def _stands(self, name: str) -> list[Effect]:
        """Told once all coordinators agree: words between zones may be under way."""
        query, heard = self.queries[name], self._heard[name]
        at: dict[int, Address] = {}
        for zone in self._zones[name]:
            known = heard.get(zone.top)
            if known is None or not known.stand:
                return []
            for node, address in known.stand:
                if at.setdefault(node, address) != address:
                    return []
        by = tuple((zone.top, self._by[name, zone.top]) for zone in self._zones[name])
        found = Stands(name, tuple(at[node] for node in range(len(query.nodes))), by)
        before = self.stands.get(name)
        self.stands[name] = found
        return [] if before == found else [Deliver(found)]

    def root_mapped(self, name: str, node: int) -> list[Effect]:
        """The last operator to be mapped is the root, which is delivery at the proxy itself."""
        query = self.queries.get(name)
        return [Deliver(Placed(name))] if query is not None and node == query.root else []

    def _take(self, query: TreeQuery, zones: tuple[Zone, ...]) -> None:
        self.queries[query.name], self._zones[query.name] = query, zones
        self.lacks[query.name], self._heard[query.name] = {}, {}
