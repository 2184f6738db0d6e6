"""Local re-optimisation (D-CAPE's LM): a node changes the shape of its own join when rates have
changed.

Source: D-CAPE 1.2, 5.2; rates and fan-outs as in MJoin (DHTJoin 2, seed 003). The expected work
of a shape follows from rates, windows and how many rows share a key. Hysteresis: a shape must be
better by `gain`, at `looks` looks in a row; each change within the last ten windows demands the
same gain once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from thalweg.adapt.moves.state.shapes import Shape, all_shapes


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of one node's share of a join."""

    rates: tuple[float, ...]  # rows an instant, by input
    windows: tuple[float, ...]  # instants
    keys: float  # different keys: a row meets 1/keys of another input's window
    scanned: (
        float  # into how many parts a probe need not look: keys for an index, buckets without one
    )

    def __post_init__(self) -> None:
        if self.keys < 1 or self.scanned < 1:
            raise ValueError(f"there is at least one key and one part: {self}")
        if len(self.rates) != len(self.windows):
            raise ValueError(f"{len(self.rates)} rates for {len(self.windows)} windows")


def expected_work(shape: Shape, statistics: Statistics) -> float:
    """Rows looked at and kept, an instant."""
    return _costs(shape, statistics)[2]


def _costs(shape: Shape, s: Statistics) -> tuple[float, float, float]:
    """Rate, size and work below and at a node, its own insertions included."""
    if not shape.children:
        rate = s.rates[shape.leaf]
        return rate, rate * s.windows[shape.leaf], rate
    parts = [_costs(child, s) for child in shape.children]
    out = work = 0.0
    for i, (rate, _, below) in enumerate(parts):
        work += below
        met = rate
        for size in sorted(size for j, (_, size, _) in enumerate(parts) if j != i):
            work += met * size / s.scanned
            met *= size / s.keys
        out += met
    # Parts overlap by half a window on average, so what is joined lives for half of it.
    shortest = min(s.windows[i] for i in shape.inputs)
    return out, out * shortest / 2, work + out


@dataclass(frozen=True, slots=True)
class Hysteresis:
    gain: float = 1.2
    looks: int = 2
    windows: int = 10


@dataclass(slots=True)
class LocalOptimiser:
    """Remembers what it changed; one for each range of a node, or for the node."""

    settings: Hysteresis = field(default_factory=Hysteresis)
    changes: list[float] = field(default_factory=list)  # instants
    why: str = ""
    _streak: int = 0

    def better(self, at: float, now: Shape, statistics: Statistics) -> Shape | None:
        """The shape to change to, if it is worth it."""
        s = self.settings
        present = expected_work(now, statistics)
        shapes: Sequence[Shape] = all_shapes(len(statistics.rates))
        best = min(shapes, key=lambda shape: expected_work(shape, statistics))
        least = expected_work(best, statistics)
        recent = sum(at - c <= s.windows * max(statistics.windows) for c in self.changes)
        if best == now or present < least * s.gain ** (1 + recent):
            self._streak = 0
            return None
        self._streak += 1
        if self._streak < s.looks:
            return None
        self._streak = 0
        self.changes.append(at)
        self.why = f"{least:,.1f} rows an instant instead of {present:,.1f}"
        return best
