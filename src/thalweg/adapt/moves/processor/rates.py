"""How many rows a range gets, from look to look."""

from __future__ import annotations

from thalweg.adapt.balancing.local import Statistics
from thalweg.adapt.moves.query import Query


class Rates:
    def __init__(self, query: Query, at: int) -> None:
        self._query = query
        self._counted = [0] * len(query.streams)
        self._looked_at = at

    def count(self, leaf: int) -> None:
        self._counted[leaf] += 1

    def since_last_look(self, at: int, keys: int) -> Statistics | None:
        """None before a window has passed."""
        instants = at - self._looked_at
        if instants < self._query.longest:
            return None
        leaves = range(len(self._query.streams))
        statistics = Statistics(
            tuple([count / instants for count in self._counted]),
            tuple([float(self._query.reach(leaf)) for leaf in leaves]),
            float(keys),
            float(keys),
        )
        self._counted, self._looked_at = [0] * len(leaves), at
        return statistics
