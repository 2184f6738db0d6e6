"""An operator on a join, where it stands: at a processor for one range, or above the union."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush

import msgspec

from thalweg.adapt.moves.operators import Accumulator, Change, Event, Groups, Operator
from thalweg.adapt.moves.query import Query, Result
from thalweg.overlay.protocol import Effect, Persist
from thalweg.plan.windows import FOREVER

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Accumulator).decode


class Below:
    """For the groups of a range. What it remembers can be folded from the join's live rows."""

    def __init__(self, query: Query) -> None:
        assert query.below is not None
        self._groups = Groups(query.below)
        self._key = query.below.keys.index(len(query.streams))
        self._ends: list[Event] = []  # a heap

    def apply(self, results: Iterable[Result], upto: int) -> list[Result]:
        """Changes below an instant: each lasts until another takes it back."""
        events: list[Event] = []
        for start, end, row, _, weight in results:
            events.append((start, row, weight))
            heappush(self._ends, (end, row, -weight))
        while self._ends and self._ends[0][0] < upto:
            events.append(heappop(self._ends))
        found = []
        for instant, row, weight in self._groups.apply(events):
            key = row[self._key]
            assert key is not None
            found.append((instant, FOREVER, row, key, weight))
        return found


def added_up(results: Iterable[Result]) -> list[Result]:
    """Partial results for an operator above: equal rows of a key as one."""
    weights: Counter[tuple[int, int, tuple[int | None, ...], int]] = Counter()
    for start, end, row, key, weight in results:
        weights[start, end, row, key] += weight
    return [(*what, weight) for what, weight in weights.items()]


class Above:
    """At the union: groups are durable, as nothing rebuilds them."""

    def __init__(self, operator: Operator) -> None:
        self._groups = Groups(operator)

    def restore(self, persisted: Mapping[str, bytes]) -> None:
        for key, value in persisted.items():
            if key.startswith("group/"):
                group = tuple([int(text) for text in key[6:].split(",") if text])
                self._groups.accumulators[group] = _decode(value)

    def apply(self, events: list[Event]) -> tuple[list[Change], list[Effect]]:
        changes = self._groups.apply(events)
        width = len(self._groups.operator.keys)
        effects: list[Effect] = []
        for group in dict.fromkeys(row[:width] for _, row, _ in events):
            found = self._groups.accumulators.get(group)
            value = _encode(found) if found is not None else None
            effects.append(Persist(f"group/{','.join(map(str, group))}", value))
        return changes, effects
