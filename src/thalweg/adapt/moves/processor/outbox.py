"""Results that were made and not yet acknowledged, in the order of their starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from thalweg.adapt.moves.query import Result

MOST_RESULTS = 1_000  # in one answer, if an instant has no more


class Outbox:
    __slots__ = ("rows", "since")

    def __init__(self, since: int) -> None:
        self.since = since  # results that begin before are not here
        self.rows: list[Result] = []

    def add(self, results: Iterable[Result]) -> None:
        self.rows += results

    def acknowledge(self, said: int) -> None:
        self.rows = [r for r in self.rows if r[0] >= said]
        self.since = max(self.since, said)

    def between(self, start: int, upto: int) -> tuple[list[Result], int]:
        """Those that begin in [start, upto); or in fewer, whole instants, if they are many."""
        rows = [r for r in self.rows if start <= r[0] < upto]
        if len(rows) > MOST_RESULTS:
            upto = max(rows[MOST_RESULTS][0], rows[0][0] + 1)
            rows = [r for r in rows if r[0] < upto]
        return rows, upto

    def part(self, ours: Callable[[int], bool]) -> Outbox:
        """That of some keys."""
        found = Outbox(self.since)
        found.rows = [r for r in self.rows if ours(r[3])]
        return found
