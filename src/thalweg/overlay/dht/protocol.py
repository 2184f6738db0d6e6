"""A table of keys and values, spread over a Chord ring (Stoica et al., 2001, section 6; r copies).

A key lives at its owner and at the r − 1 nodes after it. A put counts once all of them have it; a
get takes the newest copy among those that answer. Rings change, so copies are tended: now and then
an owner offers what it has to the nodes after it, and who holds something that is not its own
offers it to those whose it is, and lets go of it when all of them have it.

Promise: a get gives a value that was put under its key, or nothing. A put that was done survives
the loss of fewer than r neighbours: once quiet, every get gives it, or what was put after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from thalweg.overlay.chord.messages import Found, Lookup, NotFound
from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.dht.messages import (
    MESSAGES,
    Answer,
    Failed,
    Fetch,
    Fetched,
    Get,
    Got,
    Hand,
    Item,
    Offer,
    Put,
    PutDone,
    Store,
    Stored,
)
from thalweg.overlay.dht.operation import Operation
from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import (
    Address,
    Call,
    CancelTimer,
    Deliver,
    Effect,
    Event,
    Heard,
    Init,
    Leave,
    Message,
    Persist,
    Receive,
    Send,
    SetTimer,
    Tell,
    TimerFired,
)
from thalweg.overlay.routing import id_of

STRAYS_AT_ONCE = 8  # searches for owners in one round of tending
ROUNDS_OF_PATIENCE = 3


@dataclass(frozen=True, slots=True)
class Settings:
    answer_within_us: int = 600_000
    attempts: int = 6
    tend_every_us: int = 2_000_000

    def __post_init__(self) -> None:
        if min(self.answer_within_us, self.attempts, self.tend_every_us) < 1:
            raise ValueError("periods, times to wait and attempts must be above 0")


class Dht:
    name = "dht"
    messages = MESSAGES
    listens_to = ("chord",)

    def __init__(self, chord: Chord, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.items: dict[str, Item] = {}
        self._chord = chord
        self._operations: dict[int, Operation] = {}  # by the token of the present phase
        self._strays: dict[str, dict[Address, None]] = {}  # key -> owners that may lack it
        self._tokens = 0
        self._rounds = 0  # of tending
        self._heard_of: dict[str, int] = {}  # key -> the round in which somebody offered it

    def step(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case Receive(sender, message):
                return self._receive(sender, message)
            case TimerFired("tend"):
                return [SetTimer("tend", self.settings.tend_every_us), *self._tend()]
            case TimerFired(("late", int(token))):
                return self._late(self._operations.pop(token))
            case Heard(_, Found(("dht", int(token)), _, owners)):
                return self._owners_known(token, owners)
            case Heard(_, NotFound(("dht", int(token)), _)):
                operation = self._operations.pop(token, None)
                return [] if operation is None else self._rest(operation)
            case Heard(_, Found(("dht", str(key)), _, owners)):
                return self._stray(key, owners)
            case Call(Put(key, value, tag)):
                return self._look_up(Operation(key, tag, value))
            case Call(Get(key, tag)):
                return self._look_up(Operation(key, tag, None))
            case Init(_, seed, persisted):
                self.items = {k: msgspec.msgpack.decode(v, type=Item) for k, v in persisted.items()}
                return [SetTimer("tend", Generator(seed).below(self.settings.tend_every_us))]
            case Leave():
                return self._hand_over()
        return []

    # --- puts and gets ---

    def _look_up(self, operation: Operation) -> list[Effect]:
        operation.attempts += 1
        token = self._awaits(operation)
        return [Tell("chord", Lookup(id_of(operation.key), ("dht", token)))]

    def _owners_known(self, token: int, owners: tuple[Address, ...]) -> list[Effect]:
        operation = self._operations.pop(token, None)
        if operation is None:
            return []
        operation.begin(owners, writing=False)
        token = self._awaits(operation)
        return self._ask_all(operation, token, Fetch(token, operation.key))

    def _write(self, operation: Operation) -> list[Effect]:
        operation.begin(operation.owners, writing=True)
        token = self._awaits(operation)
        item = operation.item_to_write(self._chord.table.address)
        return self._ask_all(operation, token, Store(token, operation.key, item))

    def _ask_all(self, operation: Operation, token: int, message: Message) -> list[Effect]:
        late = SetTimer(("late", token), self.settings.answer_within_us)
        return [late, *(Send(a, message) for a in operation.owners)]

    def _answered(self, sender: Address, token: int, item: Item | None) -> list[Effect]:
        operation = self._operations.get(token)
        if operation is None or not operation.answer(sender, item):
            return []
        del self._operations[token]
        return [CancelTimer(("late", token)), *self._complete(operation)]

    def _complete(self, operation: Operation) -> list[Effect]:
        """All that could answer have: a put that has read goes on to write."""
        if operation.value is None:
            found = None if operation.newest is None else operation.newest.value
            return [Deliver(Got(operation.tag, found))]
        if operation.writing:
            return [Deliver(PutDone(operation.tag))]
        return self._write(operation)

    def _late(self, operation: Operation) -> list[Effect]:
        """To read, some answers are enough; to have written, all are needed."""
        resting = not operation.owners
        if not resting and operation.answered and not operation.writing:
            return self._complete(operation)
        return self._look_up(operation) if resting else self._rest(operation)

    def _rest(self, operation: Operation) -> list[Effect]:
        """Try again a little later, when the ring may have changed."""
        if operation.attempts >= self.settings.attempts:
            return [Deliver(Failed(operation.tag))]
        operation.begin((), writing=False)
        token = self._awaits(operation)
        return [SetTimer(("late", token), self.settings.answer_within_us)]

    def _awaits(self, operation: Operation) -> int:
        self._tokens += 1
        self._operations[self._tokens] = operation
        return self._tokens

    # --- copies ---

    def _keep(self, key: str, item: Item) -> list[Effect]:
        if not item.is_newer_than(self.items.get(key)):
            return []
        self.items[key] = item
        self._heard_of[key] = self._rounds
        self._strays.pop(key, None)
        return [Persist(key, msgspec.msgpack.encode(item))]

    def _tend(self) -> list[Effect]:
        """Offer the copies of what is ours; look for the owners of a few of the rest."""
        table = self._chord.table
        if not self._chord.joined or not table.successors:
            return []
        self._rounds += 1
        owned = {k: None for k in self.items if table.owns(id_of(k))}
        effects: list[Effect] = []
        if owned:
            substitutes = table.successors[: table.most_successors - 1]
            effects += [Send(a, self._offer(list(owned))) for a in substitutes]
        strays = [k for k in self.items if k not in owned and self._is_forgotten(k)]
        for key in strays[:STRAYS_AT_ONCE]:
            self._heard_of[key] = self._rounds  # others get their turn before it is tried again
            effects.append(Tell("chord", Lookup(id_of(key), ("dht", key))))
        return effects

    def _is_forgotten(self, key: str) -> bool:
        """No owner has offered it for a while, as it would to a substitute."""
        return self._rounds - self._heard_of.get(key, 0) >= ROUNDS_OF_PATIENCE

    def _stray(self, key: str, owners: tuple[Address, ...]) -> list[Effect]:
        """A copy that is not at its owner: the owner must have it; the rest if we are none."""
        if key not in self.items:
            return []
        if self._chord.table.address in owners:
            self._strays.pop(key, None)
            return [Send(owners[0], self._offer([key]))]
        self._strays[key] = dict.fromkeys(owners)
        return [Send(a, self._offer([key])) for a in owners]

    def _offer(self, keys: list[str]) -> Offer:
        items = [(k, self.items[k]) for k in keys]
        return Offer(tuple((k, i.version, i.writer) for k, i in items))

    def _offered(self, offer: Offer) -> Answer:
        have: list[str] = []
        want: list[str] = []
        newer: list[tuple[str, Item]] = []
        for key, version, writer in offer.versions:
            self._heard_of[key] = self._rounds
            mine = self.items.get(key)
            if mine is None or (version, writer) > (mine.version, mine.writer):
                want.append(key)
                continue
            have.append(key)
            if (version, writer) != (mine.version, mine.writer):
                newer.append((key, mine))
        return Answer(tuple(have), tuple(newer), tuple(want))

    def _answer(self, sender: Address, answer: Answer) -> list[Effect]:
        effects = [e for key, item in answer.newer for e in self._keep(key, item)]
        for key in answer.have:
            lacking = self._strays.get(key)
            if lacking is None:
                continue
            lacking.pop(sender, None)
            if not lacking:
                del self._strays[key], self.items[key]
                self._heard_of.pop(key, None)
                effects.append(Persist(key, None))
        wanted = tuple((k, self.items[k]) for k in answer.want if k in self.items)
        return [*effects, Send(sender, Hand(wanted))] if wanted else effects

    def _hand_over(self) -> list[Effect]:
        everything = Hand(tuple(self.items.items()))
        successors = self._chord.table.successors if self.items else ()
        return [Send(a, everything) for a in successors]

    # --- messages ---

    def _receive(self, sender: Address, message: Message) -> list[Effect]:
        match message:
            case Fetch(token, key):
                return [Send(sender, Fetched(token, self.items.get(key)))]
            case Fetched(token, item):
                return self._answered(sender, token, item)
            case Store(token, key, item):
                return [*self._keep(key, item), Send(sender, Stored(token))]
            case Stored(token):
                return self._answered(sender, token, None)
            case Offer():
                return [Send(sender, self._offered(message))]
            case Answer():
                return self._answer(sender, message)
            case Hand(items):
                return [e for key, item in items for e in self._keep(key, item)]
        return []
