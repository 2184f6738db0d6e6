"""Skew: an overloaded owner gives sub-domains of its values to partners.

Source: DHTJoin 4.6. A node is overloaded when s_n/c_n > δ. It asks the nodes of its finger table
for free room; the nearest with enough becomes partner, or several do. The domain of its values is
cut in two, and an index says who has what; purging, probing and storing happen at the partner. A
partner that overloads in turn says so, and the first owner cuts its sub-domain again.

Beyond the source: sub-domains can't split a single value. A value that alone fills half of the room
is *hot*: the tuples of its largest SteM are spread over the partners, and all others are copied to
each of them, so that each combination is made where its spread part is. And what is with a partner
belongs to the owner's life: if the partner fails, the owner begins a new life and rebuilds.

Messages: AskRoom and Room; Put with `guest_of`; Overloaded; Pass and Passed. Invariants: a value's
items are all at one node, or spread and copied as above; nothing is joined at a partner before all
that was there when the sub-domain was cut has arrived.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from thalweg.overlay.generator import stable_hash
from thalweg.overlay.p2p.dataflow import Stem
from thalweg.overlay.p2p.index_messages import AskRoom, Overloaded, Pass, Passed, Room
from thalweg.overlay.p2p.peer import AtPartner, Peer
from thalweg.overlay.p2p.stems import Stems
from thalweg.overlay.p2p.tuples import Parts, Value, hash_of, ids_of, key_text
from thalweg.overlay.protocol import Address, Effect, Send

if TYPE_CHECKING:
    from thalweg.overlay.p2p.owner import Task

_ASK_EVERY_US = 2_000_000
_ANSWERS_WITHIN_US = 700_000


@dataclass(slots=True, eq=False)
class Delegation:
    """A sub-domain [low, high) of hashed values, and who has it; a hot value has several."""

    low: int
    high: int
    partners: tuple[Address, ...]
    guest_of: str
    spread: str | None = None  # the SteM that is spread, where there are several
    arriving: set[object] = field(default_factory=set)  # what has not come there yet
    waiting: list[Task] = field(default_factory=list)


class Partners:
    def __init__(self, peer: Peer, stems: Stems) -> None:
        self.delegations: list[Delegation] = []
        self.guests: dict[str, Stems] = {}  # for others, by the owner's domain
        self._peer = peer
        self._stems = stems
        self._offers: dict[Address, int] = {}  # who has answered, in order -> its free room
        self._asked_us = -(1 << 62)
        self._domains = 0
        self._prefix = ""
        self._told: dict[str, int] = {}  # owners that were told of overload, and when
        self._tokens = 0
        self._passing: dict[int, tuple[Address, Pass, set[int]]] = {}

    @property
    def _capacity(self) -> int | None:
        settings = self._peer.settings
        return settings.room if settings.capacity is None else settings.capacity

    def start(self, prefix: str) -> None:
        self._prefix = prefix

    def of(self, value: Value) -> Delegation | None:
        if not self.delegations:
            return None
        at = hash_of(value)
        return next((d for d in reversed(self.delegations) if d.low <= at < d.high), None)

    # --- the owner's side ---

    def is_overloaded(self) -> bool:
        share, room = self._peer.settings.overloaded, self._capacity
        if share is None or room is None:
            return False
        fullest = max([self._stems.size_of(s) for s in self._stems.names()], default=0)
        return fullest > share * room

    def tend(self, now_us: int) -> list[Effect]:
        """Look for partners while overloaded; cut when some have answered."""
        self._forget_failed_guests()
        if not self.is_overloaded():
            return []
        if now_us - self._asked_us >= _ASK_EVERY_US:
            self._asked_us = now_us
            self._offers = {}
            return [Send(a, AskRoom()) for a in self._peer.chord.neighbours()]
        if self._offers and now_us - self._asked_us >= _ANSWERS_WITHIN_US:
            self._cut()
        return []

    def offered(self, sender: Address, free: int) -> None:
        """Answers come in order of latency: the first with enough room is the nearest."""
        self._offers[sender] = free

    def _cut(self) -> None:
        offers, self._offers = self._offers, {}
        room = self._capacity or 1
        sizes: dict[Value, int] = {}
        by_stem: dict[Value, dict[str, int]] = {}
        for stem, value, _ in self._stems.entries():
            sizes[value] = sizes.get(value, 0) + 1
            counts = by_stem.setdefault(value, {})
            counts[stem] = counts.get(stem, 0) + 1
        if not sizes:
            return
        hottest = max(sizes, key=lambda v: (max(by_stem[v].values()), key_text(v)))
        largest = max(by_stem[hottest], key=lambda s: (by_stem[hottest][s], s))
        if by_stem[hottest][largest] * 2 > room and self._may_spread(largest):
            partners = [a for a, free in offers.items() if free > 0][:4]
            at = hash_of(hottest)
            if len(partners) > 1:
                self._delegate(at, at + 1, tuple(partners), largest)
                return
        ordered = sorted(sizes, key=hash_of)
        if len(ordered) < 2:
            return
        need = sum(sizes.values()) // 2
        enough = [a for a, free in offers.items() if free >= need]
        partner = enough[0] if enough else max(offers, key=lambda a: offers[a])
        if offers[partner] > 0:
            middle = _median(ordered, sizes)
            self._delegate(hash_of(middle), hash_of(ordered[-1]) + 1, (partner,), None)

    def _may_spread(self, name: str) -> bool:
        """A join that reads the SteM twice would miss pairs that are at two partners."""
        stem = self._peer.dataflow.stems.get(name)
        if stem is None:
            return False
        readers = [op.signature for op, _ in stem.readers]
        return len(set(readers)) == len(readers)

    def _delegate(
        self, low: int, high: int, partners: tuple[Address, ...], spread: str | None
    ) -> Delegation:
        self._domains += 1
        delegation = Delegation(low, high, partners, f"{self._prefix}p{self._domains}", spread)
        self.delegations.append(delegation)
        moved = []
        for name, value, parts in self._stems.entries():
            stem = self._peer.dataflow.stems.get(name)
            if stem is not None and low <= hash_of(value) < high:
                moved.append((name, value, ids_of(parts)))
                self.store(delegation, stem, parts)
        self._stems.drop_where(moved)
        return delegation

    def store(self, delegation: Delegation, stem: Stem, parts: Parts) -> None:
        """Bring it there, without joining it; who is to be joined waits for it."""
        for partner in self._where(delegation, stem, parts):
            guest = AtPartner(partner, delegation.guest_of, True)
            number = self._peer.enqueue(stem, parts, ("arriving", delegation), None, guest)
            delegation.arriving.add(number)

    def send(self, delegation: Delegation, stem: Stem, task: Task) -> None:
        """To be stored and joined there."""
        for partner in self._where(delegation, stem, task.item.parts):
            guest = AtPartner(partner, delegation.guest_of, False)
            parts = task.item.parts
            number = self._peer.enqueue(stem, parts, ("task", task), task.replay, guest)
            task.open.add(number)

    def _where(self, delegation: Delegation, stem: Stem, parts: Parts) -> tuple[Address, ...]:
        partners = delegation.partners
        if len(partners) == 1 or stem.name != delegation.spread:
            return partners
        text = ",".join(f"{s}/{n}" for s, n in ids_of(parts))
        return (partners[stable_hash(text) % len(partners)],)

    def failed(self) -> list[Delegation]:
        """Those whose partner is gone: what was there has to be built again."""
        is_down = self._peer.membership.is_down
        return [d for d in self.delegations if any(is_down(a) for a in d.partners)]

    def overloaded(self, sender: Address, guest_of: str) -> list[Effect]:
        """A partner has no room: half of what it has goes to another."""
        delegation = next((d for d in self.delegations if d.guest_of == guest_of), None)
        others = [a for a, free in self._offers.items() if free > 0 and a != sender]
        if delegation is None or len(delegation.partners) > 1 or delegation.arriving:
            return []
        if not others or delegation.high - delegation.low < 2:
            self._asked_us = -(1 << 62)
            return [Send(a, AskRoom()) for a in self._peer.chord.neighbours()]
        middle = (delegation.low + delegation.high) // 2
        self._domains += 1
        name = f"{self._prefix}p{self._domains}"
        upper = Delegation(middle, delegation.high, (others[0],), name)
        self._tokens += 1
        upper.arriving.add(("pass", self._tokens))
        self.delegations.append(upper)
        order = Pass(self._tokens, guest_of, middle, delegation.high, others[0], name)
        return [Send(sender, order)]

    # --- the partner's side ---

    def free_room(self) -> int:
        room = self._capacity
        if room is None:
            return 1 << 30
        own = max([self._stems.size_of(s) for s in self._stems.names()], default=0)
        hosted = sum(
            max([g.size_of(s) for s in g.names()], default=0) for g in self.guests.values()
        )
        return max(0, room - own - hosted)

    def asked(self, sender: Address) -> list[Effect]:
        return [Send(sender, Room(self.free_room()))]

    def guest(self, guest_of: str) -> Stems:
        found = self.guests.get(guest_of)
        if found is None:
            settings = self._peer.settings
            found = self.guests[guest_of] = Stems(settings.room, settings.shedding)
        return found

    def complain(self, now_us: int, guest_of: str, owner: Address) -> list[Effect]:
        share, room = self._peer.settings.overloaded, self._capacity
        if share is None or room is None:
            return []
        stems = self.guests[guest_of]
        fullest = max([stems.size_of(s) for s in stems.names()], default=0)
        last_us = self._told.get(guest_of, -_ASK_EVERY_US)
        if fullest <= share * room or now_us - last_us < _ASK_EVERY_US:
            return []
        self._told[guest_of] = now_us
        return [Send(owner, Overloaded(guest_of))]

    def pass_on(self, sender: Address, order: Pass) -> list[Effect]:
        """What it has of a sub-domain goes to the next partner; then the owner hears of it."""
        stems = self.guests.get(order.guest_of)
        numbers: set[int] = set()
        moved = []
        for name, value, parts in stems.entries() if stems is not None else ():
            stem = self._peer.dataflow.stems.get(name)
            if stem is not None and order.low <= hash_of(value) < order.high:
                guest = AtPartner(order.to, order.as_guest_of, True)
                waits = ("passing", order.token)
                numbers.add(self._peer.enqueue(stem, parts, waits, None, guest))
                moved.append((name, value, ids_of(parts)))
        if stems is not None:
            stems.drop_where(moved)
        self._passing[order.token] = (sender, order, numbers)
        return self.passed_one(order.token, 0)

    def passed_one(self, token: int, number: int) -> list[Effect]:
        if token not in self._passing:
            return []
        owner, order, numbers = self._passing[token]
        numbers.discard(number)
        if numbers:
            return []
        del self._passing[token]
        return [Send(owner, Passed(order.token))]

    def arrived(self, what: object, go_on: Callable[[Task], None]) -> None:
        for delegation in self.delegations:
            if what in delegation.arriving:
                delegation.arriving.discard(what)
                if not delegation.arriving:
                    waiting, delegation.waiting = delegation.waiting, []
                    for task in waiting:
                        go_on(task)

    def purge(self) -> None:
        for stems in self.guests.values():
            for name in stems.names():
                stem = self._peer.dataflow.stems.get(name)
                stems.purge(1 << 62 if stem is None else self._peer.frontier(stem), (name,))

    def _forget_failed_guests(self) -> None:
        is_down = self._peer.membership.is_down
        for name in [g for g in self.guests if is_down(g.partition("#")[0])]:
            del self.guests[name]


def _median(ordered: list[Value], sizes: dict[Value, int]) -> Value:
    """The first value beyond half of the tuples; never the first of all."""
    half, seen = sum(sizes.values()) / 2, 0
    for value in ordered[:-1]:
        seen += sizes[value]
        if seen >= half:
            return ordered[ordered.index(value) + 1]
    return ordered[-1]
