"""What a group saves: as measured, where a member has run by itself too, and as estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.sharing.core import Core
from thalweg.sharing.estimate import Statistics, rows_per_s

SAMPLE = 1_000  # so many members are estimated; of more, these stand for all


@dataclass(frozen=True, slots=True)
class Cost:
    """Of the tasks' time since the site started, and how many tuples came meanwhile."""

    seconds: float = 0.0
    tuples: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.seconds + other.seconds, self.tuples + other.tuples)

    @property
    def s_per_tuple(self) -> float | None:
        return self.seconds / self.tuples if self.tuples else None


@dataclass(frozen=True, slots=True)
class Measurement:
    """Seconds of the tasks' time for each tuple that came."""

    group_s: float
    alone_s: float  # one query by itself, on average
    queries: int  # so many have run by themselves
    saved: float  # the share of what all members would cost by themselves; negative: a loss


@dataclass(frozen=True, slots=True)
class Estimate:
    """COSMOS 3.2: Σ C(Qᵢ) and C(Q), C being the rate of what has to be computed."""

    alone_rows_per_s: float
    shared_rows_per_s: float
    alone_tuples_per_s: float
    shared_tuples_per_s: float


def measure(group: Cost, alone: Sequence[Cost], members: int) -> Measurement | None:
    """None where no member has run by itself, or the group not at all."""
    together, single = group.s_per_tuple, sum(alone, Cost()).s_per_tuple
    if together is None or not single or not members:
        return None
    return Measurement(together, single, len(alone), 1 - together / (members * single))


def estimate(rep: Core, members: Sequence[Core], statistics: Statistics) -> Estimate | None:
    """None where nothing has been seen of the streams yet."""
    tuples = sum(statistics.rates.get(name, 0.0) for name in {s.name for s in rep.streams})
    if not members or any(s.name not in statistics.rates for s in rep.streams):
        return None
    asked = members[:SAMPLE]
    rows = sum(rows_per_s(core, statistics) for core in asked) * len(members) / len(asked)
    return Estimate(rows, rows_per_s(rep, statistics), tuples * len(members), tuples)
