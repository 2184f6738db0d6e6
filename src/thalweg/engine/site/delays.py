"""How long results take beside the work in them (COSMOS 6.1): PR, PPR and CPR as measured.

A tick's delay counts from the landing of the first tuple that it reads to its commit, so that
waiting for a busy node is in it, and waiting for another stream's time is not. What comes from
another node brings what it has taken so far; no two clocks are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Self

import msgspec

_KEPT = 0.9  # of what was known, at each tick: the source's low-pass filter
_FEW = 100


class Took(msgspec.Struct, frozen=True):
    """Seconds until a result was there, those of them in operators, and those between nodes."""

    delay_s: float
    work_s: float
    hops_s: float = 0.0

    @property
    def pr(self) -> float | None:
        """Performance ratio; None where no work was measured."""
        return self.delay_s / self.work_s if self.work_s > 0 else None

    @property
    def cpr(self) -> float | None:
        """The part of it between nodes; the rest, PPR, is at them."""
        return self.hops_s / self.work_s if self.work_s > 0 else None

    def after_hop(self, seconds: float) -> Took:
        return Took(self.delay_s + seconds, self.work_s, self.hops_s + seconds)

    def then(self, delay_s: float, work_s: float) -> Took:
        return Took(self.delay_s + delay_s, self.work_s + work_s, self.hops_s)

    def smoothed(self, new: Self) -> Took:
        def mean(old: float, new: float) -> float:
            return _KEPT * old + (1 - _KEPT) * new

        return Took(
            mean(self.delay_s, new.delay_s),
            mean(self.work_s, new.work_s),
            mean(self.hops_s, new.hops_s),
        )


_NOTHING = Took(0.0, 0.0)


class Delays:
    """By what a tick computes: queries that run alone, and groups. `streams_of` tells what one
    reads; those that are gone read nothing."""

    def __init__(self, streams_of: Callable[[str], Iterable[str]]) -> None:
        self._streams_of = streams_of
        self._runs: dict[str, Took] = {}
        self._came: dict[str, Took] = {}
        self._many = _FEW  # so many are looked through for those that are gone

    def came(self, stream: str, took: Took) -> None:
        """What the last rows of a stream of another node have taken up to here."""
        self._came[stream] = took

    def ticked(self, delay_s: float, seconds: Mapping[str, float]) -> None:
        """`seconds` of work, by run."""
        for run, work_s in seconds.items():
            new, known = self._slowest(run).then(delay_s, work_s), self._runs.get(run)
            self._runs[run] = new if known is None else known.smoothed(new)
        if len(self._runs) > self._many:
            self._runs = {r: took for r, took in self._runs.items() if self._streams_of(r)}
            self._many = 2 * len(self._runs) + _FEW

    def _slowest(self, run: str) -> Took:
        """Of its inputs from other nodes."""
        inputs = self._streams_of(run) if self._came else ()
        came = (self._came[s] for s in inputs if s in self._came)
        return max(came, key=lambda t: t.delay_s, default=_NOTHING)

    def of(self, run: str | None) -> Took | None:
        """None: it has said nothing yet."""
        return None if run is None else self._runs.get(run)
