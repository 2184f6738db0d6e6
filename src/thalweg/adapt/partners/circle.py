"""Who a node's partners are (COSMOS 6.2.2, Algorithm 6.1): g₁ were asked for, g₂ asked.

Asynchronous, as in the source: requests go out at once, and each answer resumes the algorithm. A
partner that is silent for three rounds is none any more; one that thinks that it still is gets the
word Part, or a place in g₂.
"""

from __future__ import annotations

from thalweg.adapt.partners.messages import Accept, Part, Propose, Reject
from thalweg.adapt.partners.settings import Settings
from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import Address, Effect, Send

SILENT_ROUNDS = 4


class Circle:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.g1: list[Address] = []
        self.g2: list[Address] = []
        self.proposed: dict[Address, int] = {}  # -> when
        self.refused: list[Address] = []  # until the next update
        self.loads: dict[Address, float] = {}
        self.heard_us: dict[Address, int] = {}

    @property
    def partners(self) -> list[Address]:
        return [*self.g1, *self.g2]

    def known_loads(self) -> dict[Address, float]:
        return {p: self.loads[p] for p in self.partners}

    def _add(self, group: list[Address], now_us: int, other: Address, load: float) -> None:
        if other not in group:
            group.append(other)
        self.hear(now_us, other, load)

    def hear(self, now_us: int, other: Address, load: float) -> None:
        self.loads[other], self.heard_us[other] = load, now_us

    # --- Algorithm 6.1 ---

    def select(
        self,
        now_us: int,
        load: float,
        neighbours: list[Address],
        others: list[Address],
        generator: Generator,
    ) -> list[Effect]:
        """`neighbours` by descending factor; then random ones of the others."""
        effects: list[Effect] = []
        strangers = [o for o in others if o not in neighbours and o not in self.g1]
        tried = [*neighbours, *generator.sample(strangers, self.settings.maximum_try)]
        for other in tried:
            if len(self.g1) + len(self.proposed) >= self.settings.max1:
                break
            if other in self.g2:
                self.g2.remove(other)
                self.g1.append(other)
            elif other in others and not self._is_settled(other):
                effects += self.propose(now_us, load, other)
        return effects

    def _is_settled(self, other: Address) -> bool:
        return other in self.g1 or other in self.proposed or other in self.refused

    def propose(self, now_us: int, load: float, other: Address) -> list[Effect]:
        self.proposed[other] = now_us
        return [Send(other, Propose(load))]

    def asked(self, now_us: int, other: Address, its_load: float, load: float) -> list[Effect]:
        if other in self.proposed or other in self.g1:
            self.proposed.pop(other, None)
            self._add(self.g1, now_us, other, its_load)
        elif other in self.g2 or len(self.g2) < self.settings.max2:
            self._add(self.g2, now_us, other, its_load)
        else:
            return [Send(other, Reject(load))]
        return [Send(other, Accept(load))]

    def accepted(self, now_us: int, other: Address, its_load: float) -> list[Effect]:
        if self.proposed.pop(other, None) is None:
            if other not in self.g1 and other not in self.g2:
                return [Send(other, Part())]  # too late: it was given up
            self.hear(now_us, other, its_load)
            return []
        if other in self.g2:
            self.g2.remove(other)
        self._add(self.g1, now_us, other, its_load)
        return []

    def rejected(self, other: Address) -> None:
        if self.proposed.pop(other, None) is not None and other not in self.refused:
            self.refused.append(other)

    def told(self, now_us: int, other: Address, its_load: float) -> list[Effect]:
        """A load from one who takes itself for a partner."""
        if other in self.g1 or other in self.g2:
            self.hear(now_us, other, its_load)
            return []
        if other in self.proposed:
            return []  # its answer decides
        if len(self.g2) < self.settings.max2:
            self._add(self.g2, now_us, other, its_load)
            return []
        return [Send(other, Part())]

    # --- endings ---

    def drop(self, other: Address) -> None:
        for group in (self.g1, self.g2):
            if other in group:
                group.remove(other)
        self.proposed.pop(other, None)
        self.loads.pop(other, None)

    def expire(self, now_us: int) -> None:
        since_us = now_us - SILENT_ROUNDS * self.settings.round_us
        for other in self.partners:
            if self.heard_us[other] < since_us:
                self.drop(other)
        for other, asked_us in list(self.proposed.items()):
            if asked_us < now_us - 2 * self.settings.answer_us:
                self.rejected(other)

    def make_room(self, load: float) -> list[Effect]:
        """Who helps least goes: the one of g₁ whose load is nearest to the own."""
        if len(self.g1) + len(self.proposed) < self.settings.max1:
            return []
        if not self.g1:
            return []
        least = min(self.g1, key=lambda p: (abs(self.loads[p] - load), p))
        self.drop(least)
        return [Send(least, Part())]
