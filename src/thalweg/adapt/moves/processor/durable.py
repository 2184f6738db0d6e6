"""What of a processor's ranges survives a restart: what they are, and their windows' segments.

Intermediates and accumulators are not stored: they are made again from the windows.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from thalweg.adapt.moves.processor.holding import Holding
from thalweg.adapt.moves.processor.meta import Meta
from thalweg.adapt.moves.query import Query
from thalweg.adapt.moves.state.shapes import parse
from thalweg.adapt.moves.state.tables import Segment
from thalweg.adapt.moves.ways.shipping import decode_segment
from thalweg.overlay.protocol import Effect, Persist

_encode = msgspec.msgpack.Encoder().encode
_decode_meta = msgspec.msgpack.Decoder(Meta).decode


class Disk:
    def __init__(self, query: Query) -> None:
        self._query = query
        self._stored: dict[str, int] = {}  # segments, by key: where they end

    def meta(self, holding: Holding) -> Effect:
        holding.meta.shape = holding.shape.text(self._query.streams)
        return Persist(_key(holding, "holding"), _encode(holding.meta))

    def whole(self, holding: Holding) -> list[Effect]:
        """It is new here: its windows too."""
        effects = [self.meta(holding), self._reached(holding)]
        for leaf in range(len(self._query.streams)):
            for number, segment in holding.join.tables[(leaf,)].segments.items():
                effects.append(self.segment(holding, leaf, number, segment))
        return effects

    def tick(self, holding: Holding) -> list[Effect]:
        """What the last tick has added."""
        effects: list[Effect] = []
        for leaf in range(len(self._query.streams)):
            segment = holding.join.tables[(leaf,)].segments.get(holding.frontier)
            if segment:
                effects.append(self.segment(holding, leaf, holding.frontier, segment))
        return [*effects, self._reached(holding)]

    def segment(self, holding: Holding, leaf: int, number: int, segment: Segment) -> Effect:
        key = _key(holding, f"segment/{leaf}/{number}")
        self._stored[key] = max(c[1] for c in segment)
        return Persist(key, _encode(segment))

    def expired(self, holding: Holding) -> list[Effect]:
        """Segments of which nothing is needed for what was not said yet."""
        return self._forget(holding, holding.meta.acked)

    def nothing(self, holding: Holding) -> list[Effect]:
        keys = [_key(holding, "holding"), _key(holding, "reached")]
        return [*[Persist(key, None) for key in keys], *self._forget(holding, None)]

    def _forget(self, holding: Holding, upto: int | None) -> list[Effect]:
        prefix = _key(holding, "segment/")
        gone = [
            key
            for key, end in self._stored.items()
            if key.startswith(prefix) and (upto is None or end < upto)
        ]
        for key in gone:
            del self._stored[key]
        return [Persist(key, None) for key in gone]

    def _reached(self, holding: Holding) -> Effect:
        return Persist(_key(holding, "reached"), b"%d" % holding.frontier)

    # --- after a restart ---

    def holdings(self, persisted: Mapping[str, bytes]) -> tuple[list[Holding], list[Effect]]:
        found: list[Holding] = []
        effects: list[Effect] = []
        for key, value in persisted.items():
            if key.startswith("holding/"):
                meta = _decode_meta(value)
                holding = Holding(self._query, meta, parse(meta.shape, self._query.streams))
                effects += self._reload(holding, persisted)
                found.append(holding)
        return found, effects

    def _reload(self, holding: Holding, persisted: Mapping[str, bytes]) -> list[Effect]:
        """Its windows as they were at the last acknowledged instant, if it has come that far."""
        at = max(holding.meta.acked, holding.meta.since)
        effects: list[Effect] = []
        windows: dict[tuple[int, ...], dict[int, Segment]] = {
            (leaf,): {} for leaf in range(len(self._query.streams))
        }
        reached = int(persisted.get(_key(holding, "reached"), b"-1"))
        prefix = _key(holding, "segment/")
        for key in [k for k in persisted if k.startswith(prefix)]:
            leaf, _, number = key[len(prefix) :].partition("/")
            rows = decode_segment(persisted[key])
            kept = tuple([c for c in rows if c[0] < at])  # what entered later is read again
            if reached >= at and len(kept) == len(rows):
                windows[(int(leaf),)][int(number)] = rows
                self._stored[key] = max(c[1] for c in rows)
                continue
            effects.append(Persist(key, None))
            if reached >= at and kept:  # under a number that no tick will use again
                whole = (*windows[(int(leaf),)].get(at, ()), *kept)
                windows[(int(leaf),)][at] = whole
        if reached < at:
            return effects
        for (leaf_number,), segments in windows.items():
            if at in segments:
                effects.append(self.segment(holding, leaf_number, at, segments[at]))
        holding.resume(windows, at)
        return [*effects, self._reached(holding)]


def _key(holding: Holding, name: str) -> str:
    m = holding.meta
    return f"{name.split('/')[0]}/{m.lo}-{m.hi}/{m.epoch}/" + name.partition("/")[2]
