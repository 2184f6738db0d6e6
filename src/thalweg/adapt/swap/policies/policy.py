"""The interface of routing policies (COSMOS 5.2.1), and what they have in common.

An eddy that has rows for several RMOs asks its policy. Of each RMO it knows the room left in its
queue, how many rows its site has consumed, and how many *virtual tuples* came back: rows that the
site made of them. A policy decides for a batch, or waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from thalweg.overlay.generator import Generator

WINDOW_ROWS = 400  # consumed rows after which what was before counts half


@dataclass(frozen=True, slots=True)
class Option:
    target: int
    room: int  # rows that its queue takes now


class Policy(Protocol):
    """`chosen` counts rows by why they went where they went."""

    chosen: Counter[str]

    def choose(self, options: Sequence[Option], rows: int, generator: Generator) -> int | None:
        """The target of the next rows; None: wait until there is room."""

    def consumed(self, target: int, rows: int) -> None:
        """The site has taken so many rows off its queue."""

    def returned(self, target: int, rows: int) -> None:
        """So many virtual tuples came back."""


PolicyMaker = Callable[[], Policy]


@dataclass(slots=True)
class Tickets:
    """Of one RMO, over a window: one for each row consumed, less one for each virtual tuple."""

    window: float = WINDOW_ROWS
    consumed: float = 0.0
    returned: float = 0.0
    seen: int = 0

    @property
    def held(self) -> float:
        return max(0.0, self.consumed - self.returned)

    @property
    def selectivity(self) -> float:
        """Rows made of a row consumed; 1 while nothing is known."""
        return (self.returned + 1.0) / (self.consumed + 1.0)

    def consume(self, rows: int) -> None:
        self.consumed += rows
        self.seen += rows
        while self.consumed > 2 * self.window:
            self.consumed /= 2
            self.returned /= 2

    def give_back(self, rows: int) -> None:
        self.returned += rows


@dataclass(slots=True)
class Bank:
    """The tickets of all RMOs of an eddy."""

    window: float = WINDOW_ROWS
    tickets: dict[int, Tickets] = field(default_factory=dict)

    def of(self, target: int) -> Tickets:
        found = self.tickets.get(target)
        if found is None:
            found = self.tickets[target] = Tickets(self.window)
        return found


def roomiest(options: Sequence[Option], generator: Generator) -> Option | None:
    """The one with the emptiest queue: its site consumes fastest. None if all are full."""
    best = max((o.room for o in options), default=0)
    if best <= 0:
        return None
    return generator.choice([o for o in options if o.room == best])


def by_tickets(options: Sequence[Option], bank: Bank, generator: Generator) -> Option | None:
    """The lottery: each RMO wins by its share of tickets; None if nobody has any."""
    held = [bank.of(o.target).held for o in options]
    luck = generator.unit() * sum(held)
    if luck <= 0:
        return None
    for option, tickets in zip(options, held, strict=True):
        luck -= tickets
        if luck < 0:
            return option
    return options[-1]
