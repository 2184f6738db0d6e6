"""What stands on a partitioned join: an aggregate or DISTINCT, below its union or above.

NETWORK: non-linear operators stand above the union, unless the partition key is among their
keys: then a group's rows are all in one bucket.

    below   at the processors, each for its own groups. What it remembers is the join's rows that
            are valid now, one more state of the range: it is frozen, sent and matched like the
            others, and accumulators are folded from it. Not linear, so PTLB is refused.
    above   at the union. Processors send only the columns that it needs, equal rows added up:
            partial results, which are linear, so every way is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

Values = tuple[int | None, ...]
Event = tuple[int, Values, int]  # from this instant on, a row so many times more
Change = tuple[int, Values, int]  # instant, result row, weight

COUNT, SUM, MIN, MAX = "count", "sum", "min", "max"


@dataclass(frozen=True, slots=True)
class Operator:
    """Columns are those of the join's row: a value of each input, then the key.

    GROUP BY `keys` with `calls` (function, column); without calls, DISTINCT of the keys.
    """

    keys: tuple[int, ...]
    calls: tuple[tuple[str, int], ...] = ()
    above: bool = False

    def __post_init__(self) -> None:
        for function, _ in self.calls:
            if function not in (COUNT, SUM, MIN, MAX):
                raise ValueError(f"{function} can't be partitioned: count, sum, min or max can")
        if not self.keys and not self.calls:
            raise ValueError("DISTINCT of no column")

    @property
    def name(self) -> str:
        return "Aggregate" if self.calls else "Distinct"

    @property
    def columns(self) -> tuple[int, ...]:
        """Those that it needs: its keys, then what it aggregates."""
        return (*self.keys, *[column for function, column in self.calls if function != COUNT])

    def misplaced(self, key: int) -> str | None:
        """Why it can't stand below a union that is partitioned by this column."""
        if self.above or key in self.keys:
            return None
        return (
            f"{self.name} without the partition key among its keys: a group has rows in several "
            "buckets; let it stand above the union, which gets partial results"
        )


def not_linear(name: str) -> str:
    """Why PTLB, which adds up two tracks, can't move this."""
    return f"{name} is not linear: let it stand above the union, or use mslb or precopy"


class Accumulator(msgspec.Struct):
    """Of one group."""

    count: int
    sums: list[int]
    extremes: list[dict[int, int]]  # for MIN and MAX: how often each value is there


class Groups:
    """Groups and what they say; rows come as `Operator.columns`."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.accumulators: dict[Values, Accumulator] = {}
        self._functions = [f for f, _ in operator.calls if f != COUNT]

    def apply(self, events: Iterable[Event]) -> list[Change]:
        """Changes of what the groups say, from changes of their rows; instants only go up."""
        by_instant: dict[int, Counter[Values]] = {}
        for instant, row, weight in events:
            by_instant.setdefault(instant, Counter())[row] += weight
        found: list[Change] = []
        keys = len(self.operator.keys)
        for instant, rows in sorted(by_instant.items()):
            touched = dict.fromkeys(row[:keys] for row in rows)
            before = {group: self.said(group) for group in touched}
            for row, weight in rows.items():
                self._add(row[:keys], row[keys:], weight)
            for group, old in before.items():
                new = self.said(group)
                if new != old:
                    found += [(instant, old, -1)] if old is not None else []
                    found += [(instant, new, 1)] if new is not None else []
        return found

    def _add(self, group: Values, values: Values, weight: int) -> None:
        found = self.accumulators.get(group)
        if found is None:
            empty: list[dict[int, int]] = [{} for _ in self._functions]
            found = self.accumulators[group] = Accumulator(0, [0] * len(empty), empty)
        found.count += weight
        for i, (function, value) in enumerate(zip(self._functions, values, strict=True)):
            assert value is not None  # values of the inputs
            if function == SUM:
                found.sums[i] += weight * value
                continue
            counts = found.extremes[i]
            counts[value] = counts.get(value, 0) + weight
            if not counts[value]:
                del counts[value]
        if not found.count and group:  # without keys the row stays, from the first one on
            del self.accumulators[group]

    def said(self, group: Values) -> Values | None:
        found = self.accumulators.get(group)
        if found is None:
            return None
        row: list[int | None] = list(group)
        values = iter(zip(found.sums, found.extremes, strict=True))
        for function, _ in self.operator.calls:
            if function == COUNT:
                row.append(found.count)
                continue
            total, counts = next(values)
            if not found.count:
                row.append(None)
            else:
                row.append(total if function == SUM else _FOLD[function](counts))
        return tuple(row)


_FOLD = {MIN: min, MAX: max}
