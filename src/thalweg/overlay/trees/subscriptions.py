"""What travels along a tree: rows of a publication, from an instant on, to whoever subscribes.

The data plane's part of a tree, as a pure protocol with integers for rows, so that loss and
duplication show at a glance. Live, Arrow Flight takes its place: it offers the same requests.

The law is that of the live network: a position is an instant. Whoever has rows up to f asks anybody
who has this stream for "from f on". A batch holds all rows in [from, upto) that any of its classes
needs, and counts once: a reader trims what it has, refuses gaps, and does not care who sent it. So
re-hanging a tree is a subscription that changes its publisher, and nothing is lost or doubled.

Requests: Offer (this node is the home of a stream), Publish (a new value there), Read (this node
wants the stream, within a tolerance), Follow (from whom). It delivers Published, Wanted, Row, and
Stands (the new publisher serves; the old one was told to stop).

Messages: Open, Opened (a reader's class, and where it begins); Subscribe (also renews, acknowledges
and asks again), Rows, Unsubscribe. Promise: a reader gets each row that is due for its class once
and in order, from where it began, whoever is above it.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import msgspec

from thalweg.overlay.protocol import (
    Address,
    Call,
    Deliver,
    Effect,
    Event,
    Init,
    Message,
    Persist,
    Receive,
    Send,
    SetTimer,
    TimerFired,
)
from thalweg.overlay.trees.demand import Labelled
from thalweg.overlay.trees.home import Home
from thalweg.overlay.trees.relay import Relay
from thalweg.overlay.trees.row_messages import (
    Follow,
    Offer,
    Open,
    Opened,
    Publish,
    Published,
    Read,
    Rows,
    Stands,
    Subscribe,
    Unsubscribe,
    Wanted,
)
from thalweg.overlay.trees.stream import Row, Tree


class Subscriptions:
    name = "subscriptions"
    messages: ClassVar[tuple[type[Message], ...]] = (Open, Opened, Subscribe, Rows, Unsubscribe)
    listens_to: ClassVar[tuple[str, ...]] = ()

    def __init__(self, renew_us: int = 500_000, lease_us: int = 3_000_000) -> None:
        self._renew_us, self._lease_us = renew_us, lease_us
        self._own: Address = ""
        self.homes: dict[Tree, Home] = {}
        self.relays: dict[Tree, Relay] = {}
        self.demand = Labelled()

    # --- what others of this node may read ---

    def classes(self, tree: Tree) -> tuple[int, ...]:
        """What this node and all below it want."""
        return self.relays[tree].classes if tree in self.relays else ()

    def reads(self, tree: Tree) -> int | None:
        """The class of this node's own reader."""
        return self.relays[tree].klass if tree in self.relays else None

    def counts(self, tree: Tree) -> Counter[tuple[int, ...]]:
        """How many rows of each label came so far."""
        kept = self.homes.get(tree) or self.relays.get(tree)
        return Counter() if kept is None else kept.counts

    # --- events ---

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, Receive):
            return self._receive(now_us, event.sender, event.message)
        if isinstance(event, TimerFired):
            return self._renew(now_us)
        if isinstance(event, Call):
            return self._called(event.request)
        if isinstance(event, Init):
            return self._init(event)
        return []

    def _init(self, event: Init) -> list[Effect]:
        self._own = event.address
        effects: list[Effect] = [SetTimer("renew", self._renew_us)]
        journals: dict[Tree, list[bytes]] = {}
        for key, value in event.persisted.items():
            kind, text = key.split(" ", 1)
            if kind == "reader":
                relay = Relay.restored(value)
                self.relays[relay.tree] = relay
                if relay.klass is not None:
                    wanted = Wanted(relay.tree, relay.klass, relay.begins)
                    effects.append(Deliver(wanted))
            else:  # "journal", in the order of its entries
                tree = msgspec.json.decode(text.split(" ", 1)[1], type=Tree)
                journals.setdefault(tree, []).append(value)
        for tree, entries in journals.items():
            self.homes[tree] = Home.replayed(tree, entries)
        return effects

    def _called(self, request: object) -> list[Effect]:
        match request:
            case Offer(tree):
                if tree not in self.homes:
                    self.homes[tree] = Home(tree)
                    return self._journalled(self.homes[tree])
            case Publish(tree, value):
                home = self.homes[tree]
                lines = home.publish(value)
                effects = [*self._journalled(home), Deliver(Published(tree, lines))]
                return effects + self._serve_all(tree)
            case Read(tree, spec):
                relay = self.relays.setdefault(tree, Relay(tree))
                if relay.spec is None:
                    relay.spec = spec
                    return [self._remember(relay), Send(tree.home, Open(tree, spec))]
            case Follow(tree, publisher):
                return self._follow(tree, publisher)
        return []

    def _follow(self, tree: Tree, publisher: Address | None) -> list[Effect]:
        relay = self.relays.setdefault(tree, Relay(tree))
        if publisher == relay.publisher:
            return []
        effects: list[Effect] = []
        if relay.publisher is not None and relay.former is None:
            relay.former = relay.publisher  # goes on until the new one serves
        elif relay.publisher is not None and relay.publisher != relay.former:
            effects.append(Send(relay.publisher, Unsubscribe(tree)))
        relay.publisher = publisher
        if publisher == relay.former:
            relay.former = None  # back again, before anything changed
        if publisher is None:
            if relay.former is not None:
                effects.append(Send(relay.former, Unsubscribe(tree)))
            relay.former = None
            return effects
        return [*effects, *self._subscribe(relay)]

    def _renew(self, now_us: int) -> list[Effect]:
        effects: list[Effect] = [SetTimer("renew", self._renew_us)]
        for relay in self.relays.values():
            if relay.spec is not None and relay.klass is None:
                effects.append(Send(relay.tree.home, Open(relay.tree, relay.spec)))
            relay.forget_silent(now_us - self._lease_us)
            effects += self._subscribe(relay)
        for home in self.homes.values():
            home.forget_silent(now_us - self._lease_us)
        return effects

    def _subscribe(self, relay: Relay) -> list[Effect]:
        relay.choose_start()
        if relay.publisher is None or not relay.classes:
            return []
        message = Subscribe(relay.tree, relay.classes, relay.upto)
        asked = [relay.publisher, *([relay.former] if relay.former is not None else [])]
        return [Send(a, message) for a in asked]

    # --- messages ---

    def _receive(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        match message:
            case Subscribe(tree, classes, start):
                return self._subscribed(now_us, sender, tree, classes, start)
            case Rows():
                return self._took(sender, message)
            case Unsubscribe(tree):
                for kept in (self.homes.get(tree), self.relays.get(tree)):
                    if kept is not None:
                        kept.readers.pop(sender, None)
            case Open(tree, spec):
                if tree in self.homes:
                    home = self.homes[tree]
                    klass, lines = home.open(spec)
                    begins = home.begins(klass)
                    effects = self._journalled(home) if lines is not None else []
                    if lines:
                        effects.append(Deliver(Published(tree, lines)))
                    return [
                        *effects,
                        Send(sender, Opened(tree, spec, klass, begins)),
                        *self._serve_all(tree),
                    ]
            case Opened(tree, spec, klass, begins):
                relay = self.relays.get(tree)
                if relay is not None and relay.spec == spec and relay.klass is None:
                    relay.begin(klass, begins)
                    wanted = Deliver(Wanted(tree, klass, begins))
                    return [self._remember(relay), wanted, *self._subscribe(relay)]
        return []

    def _subscribed(
        self, now_us: int, sender: Address, tree: Tree, classes: tuple[int, ...], start: int
    ) -> list[Effect]:
        kept = self.homes.get(tree) or self.relays.setdefault(tree, Relay(tree))
        kept.subscribe(now_us, sender, classes, start)
        effects: list[Effect] = []
        if isinstance(kept, Relay) and not kept.can_serve(sender):
            effects += self._subscribe(kept)  # more than it has: ask above at once
        return effects + self._serve(tree, sender, even_nothing=True)

    def _serve_all(self, tree: Tree) -> list[Effect]:
        kept = self.homes.get(tree) or self.relays[tree]
        return [e for reader in kept.readers for e in self._serve(tree, reader)]

    def _serve(self, tree: Tree, to: Address, *, even_nothing: bool = False) -> list[Effect]:
        kept = self.homes.get(tree) or self.relays[tree]
        batch = kept.batch(to, even_nothing)
        if batch is None:
            return []
        return [Send(to, Rows(tree, batch.classes, batch.start, batch.upto, batch.lines))]

    def _took(self, sender: Address, rows: Rows) -> list[Effect]:
        relay = self.relays.get(rows.tree)
        if relay is None or not relay.take(rows.classes, rows.start, rows.upto, rows.lines):
            return []
        effects: list[Effect] = []
        if sender == relay.publisher and relay.former is not None:
            effects.append(Send(relay.former, Unsubscribe(rows.tree)))
            relay.former = None
        if sender == relay.publisher:
            effects.append(Deliver(Stands(rows.tree, sender, relay.upto)))
        due = relay.read()
        if due is not None:
            effects.append(self._remember(relay))
            effects += [Deliver(Row(rows.tree, at, value)) for at, value in due]
        return effects + self._serve_all(rows.tree)

    # --- what must survive ---

    def _remember(self, relay: Relay) -> Effect:
        text = msgspec.json.encode(relay.tree).decode()
        return Persist(f"reader {text}", relay.remembered())

    def _journalled(self, home: Home) -> list[Effect]:
        text = msgspec.json.encode(home.tree).decode()
        return [
            Persist(f"journal {number:08d} {text}", entry) for number, entry in home.to_journal()
        ]
