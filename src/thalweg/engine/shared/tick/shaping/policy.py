"""Which shape a join should have: the cheapest, if it is worth the change (D-CAPE's LM).

Hysteresis: with it, a tick must be cheaper by `gain`, at some looks in a row; each change within
the last ten windows demands the same gain once more, and so does a window that is not known to be
full. So with steady statistics a shape stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.kernels.join.shapes import MJOIN, Inputs, Shape, shapes_of
from thalweg.engine.shared.tick.shaping.estimates import Estimates
from thalweg.engine.shared.tick.shaping.work import (
    Expected,
    Fanouts,
    build_work,
    expected,
    held_bytes,
    held_rows,
    longest_window,
)

KEPT_BYTES = 1 << 28  # of intermediates, all joins' together
GAIN = 1.04  # of a whole tick
LOOKS = 2  # in a row
WINDOWS = 10
EARLY, EVERY = 12, 4  # a look after each of the first ticks, then at every fourth


@dataclass(frozen=True)
class Look:
    """What a decision rests on."""

    at: int  # the instant
    tick: int
    known: Estimates
    fanouts: Fanouts
    changes: Sequence[int]  # instants
    refused: frozenset[Inputs]  # what took too much a while ago
    room: float  # bytes that this join may keep
    streak: int  # looks in a row at which another shape was better


@dataclass(frozen=True)
class Decision:
    shape: Shape
    why: str = ""
    streak: int = 0
    weighed: tuple[Expected, ...] = ()  # all that was looked at


class Policy(Protocol):
    def first(self, op: ph.Join, tick: int) -> Shape:
        """With which a join begins."""
        ...

    def decide(self, op: ph.Join, now: Shape, look: Look) -> Decision:
        """From the next tick on."""
        ...

    @property
    def most_bytes(self) -> int: ...


@dataclass(frozen=True)
class Adaptive:
    most_bytes: int = KEPT_BYTES
    gain: float = GAIN
    looks: int = LOOKS

    def first(self, op: ph.Join, tick: int) -> Shape:
        return MJOIN

    def decide(self, op: ph.Join, now: Shape, look: Look) -> Decision:
        known = look.known
        if known.ticks > EARLY and known.ticks % EVERY:
            return Decision(now, "", look.streak)
        if known.span <= 0 or len(shapes_of(op)) == 1:
            return Decision(now)
        weighed = tuple(expected(op, s, known, look.fanouts) for s in shapes_of(op))
        by_shape = {e.shape: e for e in weighed}
        best = min((e for e in weighed if self._fits(op, e, look)), key=lambda e: e.work)
        present = by_shape[now]
        longest = longest_window(op)
        recent = sum(look.at - c <= WINDOWS * longest for c in look.changes)
        is_young = known.since is not None and look.at - known.since < longest
        is_worth_it = (
            best.shape != now
            and present.work >= best.work * self.gain ** (1 + recent + is_young)
            and self._pays(op, best, present, known)
        )
        if not is_worth_it:
            return Decision(now, "", 0, weighed)
        if look.streak + 1 < self.looks:
            return Decision(now, "", look.streak + 1, weighed)
        why = f"{best.work / 1000:,.1f} ms a tick expected instead of {present.work / 1000:,.1f}"
        return Decision(best.shape, why, 0, weighed)

    def _fits(self, op: ph.Join, e: Expected, look: Look) -> bool:
        if look.refused.intersection(e.shape):
            return False
        rows = [(k, held_rows(op, k, e.made[k], look.known)) for k in e.shape]
        if any(r is None for _, r in rows):
            return False
        return sum(held_bytes(op, k, r) for k, r in rows if r is not None) <= look.room

    def _pays(self, op: ph.Join, best: Expected, present: Expected, known: Estimates) -> bool:
        """Whether ten windows save more than the change costs."""
        held = {k: held_rows(op, k, best.made[k], known) or 0.0 for k in best.shape}
        ticks = WINDOWS * longest_window(op) / known.span
        return (present.work - best.work) * ticks > build_work(op, best.shape, present.shape, held)


@dataclass(frozen=True)
class Chosen:
    """Shapes that somebody else chooses, by join and tick."""

    choose: Callable[[ph.Join, int], Shape]
    most_bytes: int = KEPT_BYTES

    def first(self, op: ph.Join, tick: int) -> Shape:
        return self.choose(op, tick)

    def decide(self, op: ph.Join, now: Shape, look: Look) -> Decision:
        shape = self.choose(op, look.tick + 1)
        return Decision(shape, "chosen" if shape != now else "")


ALWAYS_MJOIN = Chosen(lambda op, tick: MJOIN)
