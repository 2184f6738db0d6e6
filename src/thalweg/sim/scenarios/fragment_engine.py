"""A node's engine as `partners` sees it: it runs fragments, says instants, drains and measures."""

from __future__ import annotations

from typing import ClassVar, Protocol

from thalweg.adapt.partners.messages import (
    Drop,
    Extracted,
    Measured,
    Measurement,
    Start,
    Stop,
)
from thalweg.adapt.partners.protocol import Partners
from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import (
    Address,
    Effect,
    Event,
    Heard,
    Init,
    Message,
    SetTimer,
    Tell,
    TimerFired,
)

WINDOW_US = 250_000
MOST_DRAIN_US = 400_000


class Site(Protocol):
    """What all engines share: weights of fragments, and the streams."""

    weights: dict[str, float]
    extern: dict[Address, float]

    @property
    def instant(self) -> int: ...
    def starts(self, address: Address, fragment: str, upto: int, state: bytes) -> None: ...
    def says(self, fragment: str, upto: int) -> None: ...


class FragmentEngine:
    name = "engine"
    messages: ClassVar[tuple[type[Message], ...]] = ()
    listens_to: ClassVar[tuple[str, ...]] = ("partners",)

    def __init__(self, site: Site, partners: Partners, address: Address) -> None:
        self._site, self._partners, self._own = site, partners, address
        self._upto: dict[str, int] = {}
        self._epoch: dict[str, int] = {}
        self._generator = Generator(0)

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, TimerFired):
            if event.key == "window":
                return [SetTimer("window", WINDOW_US), *self._window(now_us)]
            assert isinstance(event.key, tuple)
            return self._drained(*event.key)
        if isinstance(event, Heard):
            return self._heard(event.value)
        if isinstance(event, Init):
            self._generator = Generator(event.seed)
            return [SetTimer("window", 1 + self._generator.below(WINDOW_US))]
        return []

    def _heard(self, value: object) -> list[Effect]:
        if isinstance(value, Start):
            self._site.starts(self._own, value.fragment, value.upto, value.state)
            self._upto[value.fragment], self._epoch[value.fragment] = value.upto, value.epoch
        elif isinstance(value, Stop):
            drain_us = 1 + self._generator.below(MOST_DRAIN_US)
            return [SetTimer((value.fragment, value.epoch), drain_us)]
        elif isinstance(value, Drop) and self._epoch.get(value.fragment) == value.epoch:
            del self._upto[value.fragment], self._epoch[value.fragment]
        return []

    def _drained(self, fragment: str, epoch: int) -> list[Effect]:
        if self._epoch.get(fragment) != epoch:
            return []  # dropped meanwhile
        upto = self._upto.pop(fragment)
        del self._epoch[fragment]
        return [Tell("partners", Extracted(fragment, epoch, upto, b"%d" % upto))]

    def _window(self, now_us: int) -> list[Effect]:
        """Say what is final, where this node decides; measure."""
        holdings, weights = self._partners.holdings, self._site.weights
        measured = []
        for fragment in self._upto:
            if holdings.decides(fragment, now_us):
                self._upto[fragment] = max(self._upto[fragment], self._site.instant)
                self._site.says(fragment, self._upto[fragment])
                load = weights[fragment]
                measured.append(Measurement(fragment, load, 1000.0, self._upto[fragment]))
        load = sum(m.load for m in measured) + self._site.extern.get(self._own, 0.0)
        return [Tell("partners", Measured(load, tuple(measured)))]
