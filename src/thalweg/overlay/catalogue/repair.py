"""How two nodes find out what their catalogues don't have in common, and make up for it.

Compare (a digest of all) is answered, where the tables differ, by Listing (the versions in the
buckets that do), and this by what the other lacks and by a wish for what oneself lacks (Give).
Equal tables cost one message; others cost their difference, not their size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from thalweg.overlay.catalogue.entry import Entry, Key
from thalweg.overlay.catalogue.messages import Compare, Give, Listing
from thalweg.overlay.catalogue.table import Table
from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Membership
from thalweg.overlay.protocol import Address, Effect, Message, Send, SetTimer

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CatalogueSettings:
    compare_every_us: int = 2_000_000
    settle_us: int = 500_000  # how long news is on its way; differences may pass by then
    at_once: int = 256  # entries in one message

    def __post_init__(self) -> None:
        if min(self.compare_every_us, self.settle_us, self.at_once) < 1:
            raise ValueError("periods and sizes of the catalogue must be above 0")


class Repair:
    """The timers are "compare", with anybody, and "ask", one with a reason."""

    def __init__(self, membership: Membership, settings: CatalogueSettings) -> None:
        self.settings = settings
        self.table = Table()
        self._membership = membership
        self._generator = Generator(0)
        self._to_ask: Address | None = None

    def _period_us(self) -> int:
        every_us = self.settings.compare_every_us
        return self._generator.between(every_us // 2, every_us + every_us // 2)

    def _compare_now(self) -> list[Effect]:
        effects: list[Effect] = [SetTimer("compare", self._period_us())]
        if up := self._membership.up():
            effects.append(Send(self._generator.choice(up), Compare(self.table.hashes)))
        return effects

    def _ask_soon(self, other: Address) -> list[Effect]:
        if self._to_ask is not None:
            return []
        self._to_ask = other
        return [SetTimer("ask", self._generator.between(1, self.settings.settle_us))]

    def _ask_now(self) -> list[Effect]:
        other, self._to_ask = self._to_ask, None
        return [] if other is None else [Send(other, Compare(self.table.hashes))]

    def _compared(self, sender: Address, message: Message) -> list[Effect]:
        if isinstance(message, Compare):
            buckets = self.table.differing(message.hashes)
            if not buckets:
                return []
            return [Send(sender, Listing(buckets, self.table.marks(buckets)))]
        if isinstance(message, Listing):
            lacking, wanted = self.table.compare(message.buckets, message.marks)
            wishes = _parts(wanted, self.settings.at_once)
            effects = self._give(sender, lacking)
            return effects + [Send(sender, Give((), tuple(part))) for part in wishes]
        return []

    def _give_wanted(self, to: Address, wanted: Iterable[Key]) -> list[Effect]:
        found = (self.table.get((name, owner)) for name, owner in wanted)
        return self._give(to, [e for e in found if e is not None])

    def _give(self, to: Address, entries: list[Entry]) -> list[Effect]:
        return [Send(to, Give(tuple(p), ())) for p in _parts(entries, self.settings.at_once)]


def _parts(items: list[T], size: int) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
