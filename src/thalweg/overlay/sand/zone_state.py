"""What a coordinator knows of one zone: SAND's boundary children and operators mapped (4.1.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from thalweg.overlay.protocol import Address
from thalweg.overlay.sand.planning import Told, ZonePlan, locations_of, place_zone
from thalweg.overlay.sand.view import Pair, lacking
from thalweg.overlay.sand.zones import Zone
from thalweg.placement.sand.tree import ROUNDING

_NEVER = -1


@dataclass(frozen=True, slots=True)
class Child:
    """A boundary child's last MAP."""

    by: Address
    stamp_us: int
    until_us: int
    told: Told


@dataclass(frozen=True, slots=True)
class Word:
    """What the zone above last said of where the top stands."""

    by: Address
    stamp_us: int
    until_us: int
    location: Address
    taker: Address | None
    final: bool


@dataclass(slots=True)
class ZoneState:
    zone: Zone
    proxy: Address
    until_us: int = 0
    saving: float = 0.0  # of its present cost, for which the zone is placed anew
    children: dict[int, Child] = field(default_factory=dict)
    view: dict[Pair, int] = field(default_factory=dict)  # what children told, and own samples
    _heard: dict[Pair, int] = field(default_factory=dict)
    samples: dict[Pair, tuple[int, ...]] = field(default_factory=dict)  # the last ones
    seen_bps: dict[int, float] = field(default_factory=dict)  # what own operators give
    measured: dict[Pair, int] = field(default_factory=dict)  # for this zone itself -> when last
    word: Word | None = None
    plan: ZonePlan | None = None
    tells: Told | None = None  # of the plan, to the zone above
    placed_since_us: int = _NEVER
    complete_since_us: int = _NEVER
    hosts: dict[int, Address] = field(default_factory=dict)  # the operators mapped table
    unheard: dict[Address, int] = field(default_factory=dict)  # hosts that have not answered, since
    said: dict[object, object] = field(default_factory=dict)  # what was said last, to whom
    _standing: dict[int, Address] | None = None  # where everything was last told to be
    _unusable: tuple[Address, ...] = ()
    _basis: object = None  # what the plan was made from

    def expire(self, now_us: int) -> None:
        self.children = {n: c for n, c in self.children.items() if c.until_us > now_us}
        if self.word is not None and self.word.until_us <= now_us:
            self.word = None

    @property
    def missing(self) -> list[int]:
        return [b.node for b in self.zone.boundary if b.node not in self.children]

    def told(self) -> dict[int, Told]:
        return {b.node: self.children[b.node].told for b in self.zone.boundary}

    def unmeasured(self, usable: Callable[[Address], bool]) -> dict[Address, tuple[Address, ...]]:
        """Who is to measure what, before the zone is placed."""
        if self.missing or not self.zone.is_measured:
            return {}
        there = [a for a in locations_of(self.zone, self.told()) if usable(a)]
        return lacking(self.view, there)

    def learn(self, ends: Pair, one_way_us: int, samples: int) -> None:
        """Messages may be held up, and never come early: of the last ones, the least counts."""
        seen = self.samples[ends] = (*self.samples.get(ends, ()), one_way_us)[-samples:]
        self.view[ends] = min(*seen, self._heard.get(ends, one_way_us))

    def merge_views(self) -> None:
        """What children told last, and own measurements; of two words on a pair the lesser."""
        self._heard = {}
        for child in self.children.values():
            for a, b, one_way_us in child.told.view:
                self._heard[a, b] = min(one_way_us, self._heard.get((a, b), one_way_us))
        self.view = dict(self._heard)
        for ends, seen in self.samples.items():
            self.view[ends] = min(*seen, self._heard.get(ends, seen[-1]))

    def to_remeasure(self, now_us: int, every_us: int) -> dict[Address, tuple[Address, ...]]:
        """Old distances; and all of them while nothing can be placed by them."""
        due = [p for p, us in self.measured.items() if self.plan is None or now_us - us >= every_us]
        return {
            a: tuple(b for first, b in due if first == a) for a in dict.fromkeys(a for a, _ in due)
        }

    def replan(
        self, now_us: int, usable: Callable[[Address], bool], measure_within_us: int
    ) -> None:
        """The plan that follows from what is known now; none while something is missing."""
        if self.missing:
            self.complete_since_us = _NEVER
            self._no_plan()
            return
        if self.complete_since_us == _NEVER:
            self.complete_since_us = now_us
        waits = now_us < self.complete_since_us + measure_within_us
        if waits and self.plan is None and self.unmeasured(usable):
            return
        told = self.told()
        unusable = tuple(a for a in locations_of(self.zone, told) if not usable(a))
        basis = (told, dict(self.view), unusable, dict(self.seen_bps))
        if basis == self._basis:
            return
        self.plan = place_zone(self.zone, told, self.view, unusable, self.seen_bps)
        here = None if self._standing is None else self._standing[self.zone.top]
        rate_bps = self.seen_bps.get(self.zone.top)
        self.tells = None if self.plan is None else self.plan.told(here, rate_bps)
        self._basis = basis
        if unusable != self._unusable:  # a host came or went, which is no drift: the best counts
            self._unusable, self._standing = unusable, None
        if self.plan is None:
            self.placed_since_us = _NEVER
        elif self.placed_since_us == _NEVER:
            self.placed_since_us = now_us

    def _no_plan(self) -> None:
        self.plan = self.tells = self._basis = self._standing = None
        self.placed_since_us = _NEVER

    @property
    def top_location(self) -> Address:
        """Where the zone above wants it, if it can stand there; else where it stands best."""
        assert self.plan is not None
        if self.word is not None and self.plan.can_stand(self.word.location):
            return self.word.location
        return self.plan.best

    def stand(self) -> dict[int, Address]:
        """Where operators and boundary children are to be: where they are, while that will do."""
        assert self.plan is not None
        best = self.plan.stand(self.top_location)
        if self._standing is None or not self._may_stay(self.plan, self._standing, best):
            self._standing = best
        return self._standing

    def _may_stay(
        self, plan: ZonePlan, standing: dict[int, Address], best: dict[int, Address]
    ) -> bool:
        """Hysteresis: else two placements of nearly the same cost alternate with measurements.

        Where nothing is measured, nothing drifts, and everybody comes to the same plan.
        """
        seen = self.seen_bps or any(c.told.rate_bps is not None for c in self.children.values())
        if not (self.zone.is_measured or seen) or standing[self.zone.top] != best[self.zone.top]:
            return False
        now, then = plan.judge(standing), plan.judge(best)
        is_late = now.delay_ms > then.delay_ms * (1 + ROUNDING)
        if now.cost == inf or (self.zone.bound_ms < inf and is_late):
            return False  # later than the zones above rely on
        # A share of the zone's own ways: over all zones that is the same share of the whole tree.
        return now.cost - then.cost <= self.saving * now.within

    @property
    def is_final(self) -> bool:
        return self.word is not None and self.word.final

    def is_mapped(self, now_us: int, lease_us: int) -> bool:
        """Finally; or for the time being, until the zones above should have been placed."""
        if self.plan is None:
            return False
        return self.is_final or now_us < self.placed_since_us + lease_us

    def final_stand(self) -> tuple[tuple[int, Address], ...]:
        """Where everything stands, if that is final."""
        if self.plan is None or not self.is_final:
            return ()
        return tuple(sorted(self.stand().items()))

    def lacks(self) -> str:
        """For people: what stands against the zone."""
        if self.missing:
            return "no word of " + ", ".join(f"node {n}" for n in self.missing)
        if self.plan is None and self._basis is not None:
            return "nothing is in time, or hosts that can't be done without are gone"
        return "distances are being measured" if self.plan is None else ""
