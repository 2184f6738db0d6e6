"""What is known of a join: rows a tick, and how many partners they find on which way."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.kernels.join.probing import probe_name
from thalweg.engine.shared.kernels.join.shapes import Inputs
from thalweg.plan.windows import BEGINNING, FOREVER

SMOOTHING = 0.3  # weight of the newest observation
STALE = 48  # ticks after which a way that is not gone is looked at again

Counts = Mapping[str, Iterable[int]]


@dataclass
class Estimates:
    """Smoothed over ticks; forgotten with the process, and soon learnt again."""

    rows: list[float]  # new ones a tick, by input
    fanouts: dict[str, float] = field(default_factory=dict)  # by `probe_name`
    seen: dict[str, int] = field(default_factory=dict)  # the tick in which it was looked at last
    span: float = 0.0  # instants a tick
    ticks: int = 0
    since: int | None = None  # the first instant that was looked at

    @classmethod
    def of(cls, op: ph.Join) -> Estimates:
        return cls([0.0] * len(op.inputs))

    def learn(self, probes: Counts, sampled: Counts, instants: tuple[int, int]) -> None:
        self.ticks += 1
        new = [0] * len(self.rows)
        for name, (probed, _) in probes.items():
            start, bound, _binds = name.split("/")
            if bound == start:
                new[int(start)] += probed
        self.rows = [self._smoothed(old, now) for old, now in zip(self.rows, new, strict=True)]
        low, high = instants
        if low > BEGINNING and high < FOREVER:
            self.since = low if self.since is None else self.since
            self.span = self._smoothed(self.span, high - low) if self.span else float(high - low)
        for counts in (probes, sampled):
            for name, (probed, matched) in counts.items():
                self.seen[name] = self.ticks
                if probed:
                    known = self.fanouts.get(name)
                    now = matched / probed
                    self.fanouts[name] = now if known is None else self._smoothed(known, now)

    def _smoothed(self, old: float, now: float) -> float:
        return now if self.ticks == 1 else old * (1 - SMOOTHING) + now * SMOOTHING

    def tried(self, names: Iterable[str]) -> None:
        """Looked for, whether rows were there or not."""
        self.seen.update(dict.fromkeys(names, self.ticks))

    def age(self, name: str) -> int:
        """Ticks since it was looked at."""
        return self.ticks - self.seen.get(name, -(1 << 30))

    def is_stale(self, name: str) -> bool:
        """Whether it is to be looked at again. While windows fill, partners become more, and what
        was seen at first says little: it is renewed soon, and then ever more seldom."""
        return self.age(name) > min(STALE, self.seen.get(name, 0))

    def fanout(self, op: ph.Join, start: int, bound: Collection[int], binds: Inputs) -> float:
        """Of rows that are bound to these inputs, how many partners each finds."""
        name = probe_name(start, bound, binds)
        if name in self.fanouts and (len(binds) == 1 or self.age(name) <= 1):
            return self.fanouts[name]
        if len(binds) > 1:
            return self._one_by_one(op, start, bound, binds)
        # As it was after other steps.
        last = f"/{binds[0]}"
        alike = [
            f for n, f in self.fanouts.items() if n.startswith(f"{start}/") and n.endswith(last)
        ]
        return sum(alike) / len(alike) if alike else 1.0

    def _one_by_one(self, op: ph.Join, start: int, bound: Collection[int], binds: Inputs) -> float:
        found, now, rest = 1.0, set(bound), list(binds)
        while rest:
            near = [t for t in rest if any(op.shared_keys(b, t) for b in now)] or rest
            target = min(near, key=lambda t: self.age(probe_name(start, now, (t,))))
            found *= self.fanout(op, start, now, (target,))
            now.add(target)
            rest.remove(target)
        return found
