"""A week of load, drawn from a seed: days and nights, queries that come and go, nodes too."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sin
from random import Random

import polars as pl

DAYS = 7
WEEKEND = (5, 6)
_NIGHT, _WEEKEND = 0.15, 0.5  # of a day's rate
TICKS_A_DAY = 86_400  # instants: seconds of the week that is played
JOINS, LEAVES = 2.0, 5.0  # days on which a node comes, and another one goes


@dataclass(frozen=True, slots=True)
class Standing:
    """A query, from one moment of the week to another, in days."""

    name: str
    text: str
    begins: float
    ends: float


@dataclass(frozen=True, slots=True)
class Week:
    streams: tuple[str, ...]
    rows_per_day: float  # of each stream, if it were day all the time
    queries_per_day: float
    keys: int
    seed: int

    def activity(self, stream: str, day: float) -> float:
        """By day 1, by night little; the sun rises at another hour for each stream."""
        shift = self.streams.index(stream) / len(self.streams)
        sun = max(0.0, sin(2 * pi * (day + shift)))
        weekend = _WEEKEND if int(day) % DAYS in WEEKEND else 1.0
        return weekend * (_NIGHT + (1 - _NIGHT) * sun)

    def rows(self, stream: str, begin: float, end: float) -> pl.DataFrame:
        """Those of a while; the same for the same seed, however often they are asked for."""
        count = round(self.rows_per_day * (end - begin) * self.activity(stream, begin))
        low, high = (round(x * TICKS_A_DAY) for x in (begin, end))
        random = Random(f"{self.seed} {stream} {low}")
        times = sorted(random.randrange(low, max(high, low + 1)) for _ in range(count))
        return pl.DataFrame(
            {
                "ts": times,
                "k": [random.randrange(self.keys) for _ in times],
                "v": [random.randrange(1000) for _ in times],
            },
            schema={"ts": pl.Int64, "k": pl.Int64, "v": pl.Int64},
        )

    def queries(self) -> list[Standing]:
        """As many in a day as it says, in the middle; each stays for a day and a half, likewise.
        Streams that come first are asked for the most."""
        random = Random(f"{self.seed} queries")
        found: list[Standing] = []
        day = 0.02
        while day < DAYS:
            name = f"q{len(found)}"
            ends = day + random.expovariate(1 / 1.5)
            found.append(Standing(name, self._text(name, random), day, ends))
            # The first day's come early, so that there is something to balance.
            pace = self.queries_per_day * (4 if day < 0.2 else 1)
            day += random.expovariate(pace)
        return found

    def _text(self, name: str, random: Random) -> str:
        weights = [1 / (place + 1) for place in range(len(self.streams))]
        (one,) = random.choices(self.streams, weights)
        other = random.choice([s for s in self.streams if s != one])
        longest, shortest = random.randrange(3_600, 14_400), random.randrange(600, 3_600)
        return (
            f"CREATE QUERY {name} AS SELECT A.k, COUNT(*) AS n, MAX(B.v) AS top "
            f"FROM {one} [Range {longest}] A, {other} [Range {shortest}] B "
            f"WHERE A.k = B.k AND A.v < {random.randrange(400, 1000)} GROUP BY A.k"
        )
