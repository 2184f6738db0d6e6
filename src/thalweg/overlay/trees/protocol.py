"""Dissemination trees that re-hang themselves: who takes a stream from whom.

Source: COSMOS (seed 000) 4.2.2 and 4.3.2; what happens when messages or nodes are lost is added
here, as the source leaves it out (docs/trees.md, docs/deviations.md).

A tree says for each node under whom it hangs. What travels, and from which instant on, is the
business of `subscriptions`, which this protocol tells whom to Follow; it hears which streams are
Wanted here, and when a new publisher Stands. So it can be driven live with another data plane.

Messages: see `messages`. Join and Beat make parents (`hanging.py`), Here and Ack carry reports
(`reporting.py`), Token, Hold, Rehang and Rehung adapt (`adapting.py`, `holding.py`).

Promise: once quiet, no circle outlives three rounds; everybody who wants a stream hangs under its
home; nobody waits for an acknowledgement or is held for longer than a lease.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from thalweg.overlay.protocol import (
    Address,
    Effect,
    Event,
    Heard,
    Init,
    Leave,
    Message,
    Receive,
    Send,
    SetTimer,
    TimerFired,
)
from thalweg.overlay.trees import messages as say
from thalweg.overlay.trees.adapting import Adaptation
from thalweg.overlay.trees.hanging import Hanging
from thalweg.overlay.trees.row_messages import Stands, Wanted
from thalweg.overlay.trees.stream import Tree


class Capacity(msgspec.Struct, frozen=True):
    """What this node was measured to take for a row: to check it for a child, and to send it; and
    how long rows wait here before that, however many there are."""

    filter_us: float
    send_us: float
    hop_us: float = 0.0


class Prefer(msgspec.Struct, frozen=True):
    """Hang under this node, if it takes this one, and serves."""

    tree: Tree
    parent: Address


class Trees(Hanging, Adaptation):
    name = "trees"
    messages: ClassVar[tuple[type[Message], ...]] = say.ALL
    listens_to: ClassVar[tuple[str, ...]] = ("subscriptions",)

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, Receive):
            return self._receive(now_us, event.sender, event.message)
        if isinstance(event, TimerFired):
            return self._due(now_us, event.key)
        if isinstance(event, Heard):
            return self._heard(now_us, event.value)
        if isinstance(event, Init):
            return self._init(now_us, event)
        if isinstance(event, Leave):
            return self._goodbyes()
        if isinstance(event.request, Capacity):
            told = event.request
            self.filter_us, self.send_us, self.hop_us = told.filter_us, told.send_us, told.hop_us
        if isinstance(event.request, Prefer):
            return self._prefers(now_us, event.request.tree, event.request.parent)
        return []

    def _init(self, now_us: int, event: Init) -> list[Effect]:
        self._start(now_us, event.address)
        for relay in self._streams.relays.values():  # what was wanted before a restart
            if relay.klass is not None:
                self._place(now_us, relay.tree)
        spread_us = event.seed % self.times.beat_us  # nodes that start together don't beat together
        window_us = event.seed % self.times.window_us
        return [SetTimer("beat", 1 + spread_us), SetTimer("window", 1 + window_us)]

    def _due(self, now_us: int, key: object) -> list[Effect]:
        if key == "window":
            return [SetTimer("window", self.times.window_us), *self._end_window(now_us)]
        effects: list[Effect] = [SetTimer("beat", self.times.beat_us)]
        for tree in self._streams.homes:
            place = self._place(now_us, tree)
            place.stamp = place.stamp_us = now_us
            round_us = self.times.round_us
            if round_us is not None and now_us - place.round_us >= round_us:
                effects += self._begin_round(now_us, place)
        for place in list(self.places.values()):
            if not self._is_home(place.tree):
                effects += self._look_after_parent(now_us, place)
            effects += self._look_after_moves(now_us, place)
            effects += self._look_after_children(now_us, place)
        return effects + self._perform(now_us, self.holding.expire(now_us))

    def _heard(self, now_us: int, value: object) -> list[Effect]:
        if isinstance(value, Stands):
            return self._stands(now_us, value.tree, value.publisher)
        if isinstance(value, Wanted) and self._own:  # before Init, `_init` will see it
            place = self._place(now_us, value.tree)
            if place.parent is None and place.joining is None and not self._is_home(value.tree):
                place.hints = list(value.hints) or place.hints
                return self._look_for_parent(now_us, place)
        return []

    def _receive(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        match message:
            case say.Beat():
                return self._heard_beat(now_us, sender, message)
            case say.Here():
                self._heard_here(now_us, sender, message)
            case say.Join():
                return self._asked_to_join(now_us, sender, message)
            case say.Refuse():
                return self._refused(sender, message)
            case say.Bye(tree):
                return self._said_bye(now_us, sender, tree)
            case say.Token(tree, round_):
                return self._got_token(now_us, tree, round_)
            case say.Hold(tree, round_, number):
                held = self.holding.hold(now_us, sender, tree, round_, number)
                return self._perform(now_us, held)
            case say.Ack(tree, round_):
                self._heard_here(now_us, sender, message)
                return self._perform(now_us, self.holding.ack(now_us, sender, tree, round_))
            case say.Rehang():
                return self._told_to_rehang(now_us, sender, message)
            case say.Rehung():
                return self._heard_rehung(now_us, message)
            case say.Ping(stamp_us):
                return [Send(sender, say.Pong(stamp_us))]
            case say.Pong(stamp_us):
                self._distances.observe(sender, now_us - stamp_us)
        return []
