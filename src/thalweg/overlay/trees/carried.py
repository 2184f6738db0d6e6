"""The streams of a live node, as the tree protocol sees them: it takes `subscriptions`' place.

Rows travel over Arrow Flight. Whoever moves them tells this protocol which streams are at home here
(Offer, Withdraw), which ones this node has or passes on (Want, Unwant), how many rows come (Came),
and that a new publisher serves (Stood); and hears from it whom to Follow. Nothing is persisted:
after a restart it is told again, with the publisher that it had.

Demands are rates (`demand.py`). One that differs by less than a fifth from what was told is not
told again, as everything else (`reporting.py`).

Messages: none. Promise: none of its own; it hands on what it is told.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from thalweg.overlay.protocol import Address, Call, Deliver, Effect, Event, Message
from thalweg.overlay.trees.demand import PER_S, Nested
from thalweg.overlay.trees.row_messages import Follow, Offer, Stands, Wanted
from thalweg.overlay.trees.stream import Tree

LEAST = 1  # who has a stream wants something of it, also while nothing comes
_TOLD = 1.2  # a rate that has changed by less is the same


class Want(msgspec.Struct, frozen=True):
    """This node has the stream, or is about to; these publishers come first, if there are any. Who
    only passes it on has no reader of its own."""

    tree: Tree
    hints: tuple[Address, ...] = ()
    only_passes_on: bool = False


class Came(msgspec.Struct, frozen=True):
    """So many rows a second come for this node and all below it."""

    tree: Tree
    rows_per_s: float


class Unwant(msgspec.Struct, frozen=True):
    tree: Tree


class Withdraw(msgspec.Struct, frozen=True):
    """The stream is not at home here any more."""

    tree: Tree


class Stood(msgspec.Struct, frozen=True):
    tree: Tree
    publisher: Address


@dataclass(slots=True)
class Carrying:
    tree: Tree
    klass: int | None = LEAST  # of the own reader


class Carried:
    name = "subscriptions"
    messages: ClassVar[tuple[type[Message], ...]] = ()
    listens_to: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self.homes: dict[Tree, Carrying] = {}
        self.relays: dict[Tree, Carrying] = {}
        self.demand = Nested()

    def classes(self, tree: Tree) -> tuple[int, ...]:
        if tree not in self.relays:
            return ()
        own = self.relays[tree].klass
        return (LEAST if own is None else own,)

    def reads(self, tree: Tree) -> int | None:
        return self.relays[tree].klass if tree in self.relays else None

    def counts(self, tree: Tree) -> Counter[tuple[int, ...]]:
        return Counter()  # rows carry no labels

    def step(self, now_us: int, event: Event) -> list[Effect]:
        return self._called(event.request) if isinstance(event, Call) else []

    def _called(self, request: object) -> list[Effect]:
        match request:
            case Offer(tree):
                self.homes.setdefault(tree, Carrying(tree))
            case Withdraw(tree):
                self.homes.pop(tree, None)
            case Want(tree, hints, only_passes_on):
                if tree not in self.relays:
                    self.relays[tree] = Carrying(tree, None if only_passes_on else LEAST)
                    return [Deliver(Wanted(tree, LEAST, 0, hints))]
            case Came(tree, rows_per_s):
                self._came(tree, max(LEAST, round(rows_per_s * PER_S)))
            case Unwant(tree):
                self.relays.pop(tree, None)
            case Stood(tree, publisher):
                return [Deliver(Stands(tree, publisher, 0))]
            case Follow():
                return [Deliver(request)]
        return []

    def _came(self, tree: Tree, rate: int) -> None:
        kept = self.relays.get(tree)
        if kept is None or kept.klass is None:
            return
        if max(rate, kept.klass) >= _TOLD * min(rate, kept.klass):
            kept.klass = rate
