"""Membership and failure detection, once for all protocols of a node.

Source: SWIM (Das, Gupta, Motivala, 2002): probes in random order, indirect probes, suspicion with
incarnations, news on the back of probes. Added here: members are never forgotten for being down,
and now and then a node compares all it knows with any remembered member, up or down. So two halves
of a partition find each other again, late news is repaired, and a node can join through anybody.

Messages: Ping and Ack; PingFor, a ping on another's behalf; Compare, one's whole view, which asks
for the other's in return; Farewell. Each carries words about members, the sender's own first. A
message to somebody of ill repute says so, and the accused answers with a new incarnation.

Requests: Join(contacts); Doubt(address), by a protocol whose own message was not answered: probe it
now. Deliveries: Up(address), Down(address). To read: `up()`, `is_down(address)`.

Promise: nobody is taken to have left who did not leave. A member that stops is down for all who
know it, a member that runs is not down for long; once the network is quiet, everybody's view holds
exactly those that run (as many as its capacity allows).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import msgspec

from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import (
    Address,
    Call,
    CancelTimer,
    Deliver,
    Effect,
    Event,
    Init,
    Leave,
    Message,
    Persist,
    Receive,
    Send,
    SetTimer,
    TimerFired,
)
from thalweg.overlay.view import (
    ALIVE,
    DOWN,
    HEARD_OF,
    LEFT,
    SPEAKING,
    SUSPECT,
    UNHEARD,
    View,
    Word,
)


@dataclass(frozen=True, slots=True)
class Settings:
    period_us: int = 1_000_000  # between two probes
    ack_within_us: int = 400_000  # before others are asked to probe too
    suspect_after_us: int = 1_000_000  # without any Ack
    down_after_us: int = 3_000_000  # time for the suspect to object
    compare_every_us: int = 4_000_000
    helpers: int = 2  # asked for indirect probes
    capacity: int = 256  # members remembered

    def __post_init__(self) -> None:
        if min(self.period_us, self.compare_every_us, self.capacity) < 1:
            raise ValueError("periods and the capacity of a view must be above 0")
        if not 0 < self.ack_within_us <= self.suspect_after_us:
            raise ValueError("helpers are asked before a member is suspected")
        if self.down_after_us < 0 or self.helpers < 0:
            raise ValueError("a delay or a number of helpers can't be negative")


# --- requests and deliveries ---


class Join(msgspec.Struct, frozen=True):
    contacts: tuple[Address, ...]


class Doubt(msgspec.Struct, frozen=True, gc=False):
    address: Address


class Up(msgspec.Struct, frozen=True, gc=False):
    address: Address


class Down(msgspec.Struct, frozen=True, gc=False):
    address: Address


# --- messages ---


class Ping(Message, frozen=True):
    token: int
    words: tuple[Word, ...]


class Ack(Message, frozen=True):
    token: int
    words: tuple[Word, ...]


class PingFor(Message, frozen=True):
    token: int
    target: Address
    words: tuple[Word, ...]


class Compare(Message, frozen=True):
    words: tuple[Word, ...]
    is_answer: bool


class Farewell(Message, frozen=True):
    words: tuple[Word, ...]


class Membership:
    __slots__ = (
        "_asked_by",
        "_generator",
        "_order",
        "_own",
        "_probed",
        "_tokens",
        "address",
        "settings",
        "view",
    )
    name = "membership"
    messages = (Ping, Ack, PingFor, Compare, Farewell)
    listens_to = ()

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.address = ""
        self._own = Word("", 0, ALIVE)  # what this node says of itself
        self.view = View(self.settings.capacity, Generator(0))
        self._generator = Generator(0)
        self._order: list[Address] = []  # still to be probed in this round
        self._probed: dict[int, Address] = {}  # open probes by token
        self._asked_by: dict[int, tuple[Address, int]] = {}  # probes on others' behalf
        self._tokens = 0

    # --- what other protocols may read ---

    @property
    def incarnation(self) -> int:
        return self._own.incarnation

    def up(self) -> list[Address]:
        """The other members, as far as known, that are not known to be gone."""
        return self.view.up()

    def is_down(self, address: Address) -> bool:
        """Known to have stopped or left; somebody unheard of is not."""
        if not self.view.gone:
            return False  # the rule; and Chord asks several times a hop
        word = self.view.words.get(address)
        return word is not None and word.status > SUSPECT and word.incarnation != UNHEARD

    # --- events ---

    def step(self, now_us: int, event: Event) -> list[Effect]:
        # The busy kinds first, by their type: a pattern that does not match costs more than a step.
        if type(event) is Receive:
            return self._receive(event.sender, event.message)
        if type(event) is TimerFired:
            return self._due(event.key)
        match event:
            case Call(Doubt(address)):
                return self._doubt(address)
            case Call(Join(contacts)):
                return self._join(contacts)
            case Init(address, seed, persisted):
                return self._init(address, seed, persisted.get("self"), persisted.get("members"))
            case Leave():
                return self._leave()
        return []

    def _due(self, timer: Hashable) -> list[Effect]:
        match timer:
            case "probe":
                return self._probe_next()
            case "compare":
                return self._compare()
            case ("ack", int(token)):
                return self._ask_helpers(token)
            case ("suspect", int(token)):
                return self._suspect(token)
            case ("down", str(address), int(incarnation)):
                return self._take([Word(address, incarnation, DOWN)])
        return []

    def _init(
        self, address: Address, seed: int, own: bytes | None, members: bytes | None
    ) -> list[Effect]:
        self.address = address
        self._generator = Generator(seed)
        self.view = View(self.settings.capacity, self._generator)
        # A new life is a new incarnation: what was said about the last one no longer counts.
        effects = self._become(0 if own is None else int(own) + 1)
        if members is not None:
            effects += self._join(tuple(msgspec.msgpack.decode(members, type=list[Address])))
        # At a random point of the period, so that nodes that start together don't probe together.
        effects.append(SetTimer("probe", self._generator.below(self.settings.period_us)))
        effects.append(SetTimer("compare", self._generator.below(self.settings.compare_every_us)))
        return effects

    def _join(self, contacts: tuple[Address, ...]) -> list[Effect]:
        """Remember them, and ask a few; who does not answer is asked again by `_compare`."""
        others = [a for a in contacts if a != self.address]
        for address in others:
            self.view.take(Word(address, UNHEARD, DOWN))
        asked = self._generator.sample(others, 3)
        # At once: a node that stops before its first probe would come back knowing nobody.
        return [*self._remember(), *(Send(a, Compare(self._everything(), False)) for a in asked)]

    def _remember(self) -> list[Effect]:
        if not self.view.changed:
            return []
        self.view.changed = False
        return [Persist("members", msgspec.msgpack.encode(self.view.remembered()))]

    def _leave(self) -> list[Effect]:
        word = Word(self.address, self.incarnation, LEFT)
        told = self._generator.sample(self.view.up(), 2 + self.settings.helpers)
        return [Send(a, Farewell((word,))) for a in told]

    # --- probing ---

    def _probe_next(self) -> list[Effect]:
        effects = [SetTimer("probe", self.settings.period_us), *self._remember()]
        while self._order or self._new_round():
            address = self._order.pop()
            if self.view.is_up(address):
                return effects + self._probe(address)
        return effects

    def _new_round(self) -> bool:
        """Everybody once per round, in an order of one's own: no member waits for long."""
        self._order = self.view.up()
        self._generator.shuffle(self._order)
        return bool(self._order)

    def _doubt(self, address: Address) -> list[Effect]:
        known = self.view.words.get(address)
        effects: list[Effect] = []
        if known is None or known.incarnation == UNHEARD:
            # A stranger that another protocol deals with: a member from now on, dead or alive.
            effects = self._take([Word(address, 0, ALIVE)], chance=1.0)
        if self.view.is_up(address) and address not in self._probed.values():
            effects += self._probe(address)
        return effects

    def _probe(self, address: Address) -> list[Effect]:
        self._tokens += 1
        self._probed[self._tokens] = address
        return [
            Send(address, Ping(self._tokens, self._words_for(address))),
            SetTimer(("ack", self._tokens), self.settings.ack_within_us),
            SetTimer(("suspect", self._tokens), self.settings.suspect_after_us),
        ]

    def _ask_helpers(self, token: int) -> list[Effect]:
        target = self._probed[token]
        others = [a for a in self.view.up() if a != target]
        helpers = self._generator.sample(others, self.settings.helpers)
        return [Send(a, PingFor(token, target, self._words_for(target))) for a in helpers]

    def _suspect(self, token: int) -> list[Effect]:
        address = self._probed.pop(token)
        word = self.view.words.get(address)
        if word is None or word.status != ALIVE:
            return []
        return self._take([Word(address, word.incarnation, SUSPECT)])

    def _compare(self) -> list[Effect]:
        """With anybody remembered, whatever their repute: this is how halves find each other."""
        alone = not self.view.up()
        every_us = self.settings.period_us if alone else self.settings.compare_every_us
        effects: list[Effect] = [SetTimer("compare", every_us)]
        if remembered := self.view.remembered():
            other = self._generator.choice(remembered)
            effects.append(Send(other, Compare(self._everything(), False)))
        return effects

    # --- messages ---

    def _receive(self, sender: Address, message: Message) -> list[Effect]:
        if type(message) is Ping:
            effects = self._take(message.words, sender)
            return [*effects, Send(sender, Ack(message.token, self._words_for(sender)))]
        if type(message) is Ack:
            return self._take(message.words, sender) + self._acked(message.token)
        if type(message) is Compare:
            effects = self._take(message.words, sender)
            if not message.is_answer:
                effects.append(Send(sender, Compare(self._everything(), True)))
            return effects
        if type(message) is PingFor:
            effects = self._take(message.words, sender)
            self._tokens += 1
            self._asked_by[self._tokens] = (sender, message.token)
            if len(self._asked_by) > self.settings.capacity:
                self._asked_by.pop(next(iter(self._asked_by)))  # the oldest: never answered
            target = message.target
            return [*effects, Send(target, Ping(self._tokens, self._words_for(target)))]
        if type(message) is Farewell:
            return self._take(message.words, sender)
        return []

    def _acked(self, token: int) -> list[Effect]:
        asked_by = self._asked_by.pop(token, None)
        if asked_by is not None:
            client, its_token = asked_by
            return [Send(client, Ack(its_token, self._words_for(client)))]
        if self._probed.pop(token, None) is None:
            return []
        return [CancelTimer(("ack", token)), CancelTimer(("suspect", token))]

    # --- words ---

    def _words_for(self, address: Address) -> tuple[Word, ...]:
        accusation = self.view.words.get(address)
        if accusation is None or accusation.status == ALIVE or accusation.incarnation == UNHEARD:
            return (self._own, *self.view.news())
        return (self._own, accusation, *self.view.news())

    def _everything(self) -> tuple[Word, ...]:
        return (self._own, *self.view.words.values())

    def _take(
        self, words: Iterable[Word], sender: Address | None = None, chance: float = HEARD_OF
    ) -> list[Effect]:
        effects: list[Effect] = []
        members = self.view.words
        for word in words:
            address = word.address
            known = members.get(address)
            if known == word:
                continue  # most of what one hears is old
            if address == self.address:
                effects += self._object_to(word)
                continue
            was_up = known is not None and known.status <= SUSPECT
            if word.status == DOWN and known is not None and known.status == ALIVE:
                # Hearsay of one who was cut off: the accused gets its chance to object first.
                word = Word(address, word.incarnation, SUSPECT)
            if not self.view.take(word, SPEAKING if address == sender else chance):
                continue
            if word.status == SUSPECT:
                key = ("down", address, word.incarnation)
                effects.append(SetTimer(key, self.settings.down_after_us))
            if was_up != (word.status <= SUSPECT):
                effects.append(Deliver(Down(address) if was_up else Up(address)))
        return effects

    def _object_to(self, word: Word) -> list[Effect]:
        """To live is to say so: an accusation is answered with a new incarnation."""
        return self._become(word.incarnation + 1) if word.overrides(self._own) else []

    def _become(self, incarnation: int) -> list[Effect]:
        self._own = Word(self.address, incarnation, ALIVE)
        return [Persist("self", b"%d" % incarnation)]
