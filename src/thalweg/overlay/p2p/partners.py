"""Skew: an overloaded owner gives sub-domains of its values to partners.

Source: DHTJoin 4.6. A node is overloaded when s_n/c_n > δ. It asks the nodes of its finger table
for free room; the nearest with enough becomes partner, or several do. The domain of its values is
cut in two, and an index says who has what; purging, probing and storing happen at the partner. A
partner that overloads in turn says so, and the first owner cuts its sub-domain again.

Beyond the source: sub-domains can't split a single value. A value that alone fills half of the room
is *hot*: the tuples of its largest SteM are spread over the partners, and all others are copied to
each of them, so that each combination is made where its spread part is. And what is with a partner
belongs to the owner's life: if the partner fails, the owner begins a new life and rebuilds. So it
does if the partner was restarted unnoticed, with nothing of it left: its answers name its life.

Messages: AskRoom and Room; Put with `guest_of`; Overloaded; Pass and Passed. Invariants: a value's
items are all at one node, or spread and copied as above; nothing is joined at a partner before all
that was there when the sub-domain was cut has arrived, nor counts if it was joined where a
sub-domain has left; a partner forgets what has ended, alone.
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
    from thalweg.overlay.p2p.found_rows import Task

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
    hot: Value = None  # the value, where it is one
    arriving: set[object] = field(default_factory=set)  # what has not come there yet
    waiting: list[Task] = field(default_factory=list)
    hosts: dict[Address, str] = field(default_factory=dict)  # lives of partners, as first answered
    order: Pass | None = None  # to the partner that had it before, until it is done
    is_lost: bool = False  # a partner has begun another life, with nothing of it


@dataclass(slots=True)
class Passing:
    """What goes from this partner to the next one."""

    owner: Address
    numbers: set[int]
    hosts: set[str] = field(default_factory=set)  # lives of the next one


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
        self._passing: dict[str, Passing] = {}  # by the new name of the sub-domain
        self._passed: dict[str, Passed] = {}  # the answers, for who asks again

    @property
    def _capacity(self) -> int | None:
        settings = self._peer.settings
        return settings.room if settings.capacity is None else settings.capacity

    def start(self, prefix: str) -> None:
        self._prefix = prefix

    @property
    def life(self) -> str:
        """Of this node: what it has of others ends with it."""
        return self._prefix

    def of(self, value: Value) -> Delegation | None:
        """The oldest that has it: one that was cut later may reach across, with nothing of it."""
        if not self.delegations:
            return None
        at = hash_of(value)
        return next((d for d in self.delegations if d.low <= at < d.high), None)

    # --- the owner's side ---

    def is_overloaded(self) -> bool:
        share, room = self._peer.settings.overloaded, self._capacity
        if share is None or room is None:
            return False
        fullest = max([self._stems.size_of(s) for s in self._stems.names()], default=0)
        return fullest > share * room

    def tend(self, now_us: int) -> list[Effect]:
        """Look for partners while overloaded; cut when some have answered."""
        effects = [e for d in self.delegations for e in self._ordered(d)]
        if not self.is_overloaded():
            return effects
        if now_us - self._asked_us >= _ASK_EVERY_US:
            self._asked_us = now_us
            self._offers = {}
            return [*effects, *(Send(a, AskRoom()) for a in self._peer.chord.neighbours())]
        if self._offers and now_us - self._asked_us >= _ANSWERS_WITHIN_US:
            self._cut()
        return effects

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
                self._delegate(at, at + 1, tuple(partners), largest).hot = hottest
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
            if stem is not None and self.of(value) is delegation:
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
            number = self._peer.enqueue(
                stem, parts, ("task", task), task.replay, guest, task.item.share
            )
            task.open.add(number)

    def _where(self, delegation: Delegation, stem: Stem, parts: Parts) -> tuple[Address, ...]:
        partners = delegation.partners
        if len(partners) == 1 or stem.name != delegation.spread:
            return partners
        text = ",".join(f"{s}/{n}" for s, n in ids_of(parts))
        return (partners[stable_hash(text) % len(partners)],)

    def is_as_before(self, guest: AtPartner, host: str) -> bool:
        """Whether a partner's answer is of the life that all its answers were of. What it has not
        answered yet is sent again, to the life that answers first."""
        delegation = self._named(guest.guest_of)
        if delegation is None:
            return True  # not of this node's: it passes on what it has
        if delegation.hosts.setdefault(guest.partner, host) != host:
            delegation.is_lost = True
        return not delegation.is_lost

    def _named(self, guest_of: str) -> Delegation | None:
        return next((d for d in self.delegations if d.guest_of == guest_of), None)

    def failed(self) -> list[Delegation]:
        """Those whose partner is gone: what was there has to be built again."""
        is_down = self._peer.membership.is_down
        return [d for d in self.delegations if d.is_lost or any(is_down(a) for a in d.partners)]

    def give_up(self) -> list[Task]:
        """All of it; whoever waited for a partner waits in vain."""
        names = {d.guest_of for d in self.delegations}
        waiting = [task for d in self.delegations for task in d.waiting]
        for number, out in list(self._peer.outs.items()):
            if out.guest is not None and out.guest.guest_of in names:
                self._peer.forget(number)
                assert isinstance(out.waits, tuple)
                if out.waits[0] == "task":
                    waiting.append(out.waits[1])
        self.delegations.clear()
        return waiting

    def overloaded(self, sender: Address, guest_of: str) -> list[Effect]:
        """A partner has no room: half of what it has goes to another."""
        delegation = self._named(guest_of)
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
        upper.order = Pass(guest_of, middle, upper.high, others[0], name)
        upper.arriving.add(upper.order)
        upper.waiting = self._called_back(delegation, middle)
        self.delegations.append(upper)
        delegation.high = middle
        return self._ordered(upper)

    def _called_back(self, delegation: Delegation, low: int) -> list[Task]:
        """What is under way to a partner that will not have its values any more: it might come
        there after they have left, and meet nobody."""
        found = []
        for number, out in list(self._peer.outs.items()):
            is_there = out.guest is not None and out.guest.guest_of == delegation.guest_of
            if is_there and hash_of(out.stem.key(out.item.parts)) >= low:
                assert isinstance(out.waits, tuple)
                task: Task = out.waits[1]
                self._peer.forget(number)
                task.open.discard(number)
                found.append(task)
        return found

    def _ordered(self, delegation: Delegation) -> list[Effect]:
        """Once more, while it is not done: either message may get lost."""
        order = delegation.order
        before = self._named(order.guest_of) if order is not None else None
        return [] if order is None or before is None else [Send(before.partners[0], order)]

    def passed(self, message: Passed, go_on: Callable[[Task], None]) -> None:
        delegation = self._named(message.as_guest_of)
        if delegation is None or delegation.order is None:
            return
        order, next_hosts = delegation.order, message.next_hosts
        before = self._named(order.guest_of)
        assert before is not None  # they are given up together
        had = before.hosts.setdefault(before.partners[0], message.host)
        if had != message.host or len(next_hosts) > 1:
            delegation.is_lost = True
            return
        delegation.hosts.update((order.to, host) for host in next_hosts)
        delegation.order = None
        self.arrived(order, go_on)

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
        name = order.as_guest_of
        if name in self._passed:
            return [Send(sender, self._passed[name])]
        if name in self._passing:
            return []
        stems = self.guests.get(order.guest_of)
        passing = self._passing[name] = Passing(sender, set())
        moved = []
        for stem_name, value, parts in stems.entries() if stems is not None else ():
            stem = self._peer.dataflow.stems.get(stem_name)
            if stem is not None and order.low <= hash_of(value) < order.high:
                guest = AtPartner(order.to, name, True)
                passing.numbers.add(self._peer.enqueue(stem, parts, ("passing", name), None, guest))
                moved.append((stem_name, value, ids_of(parts)))
        if stems is not None:
            stems.drop_where(moved)
        return self._end_passing(name)

    def passed_one(self, name: str, number: int, host: str) -> list[Effect]:
        passing = self._passing.get(name)
        if passing is None:
            return []
        passing.numbers.discard(number)
        passing.hosts.add(host)
        return self._end_passing(name)

    def _end_passing(self, name: str) -> list[Effect]:
        passing = self._passing[name]
        if passing.numbers:
            return []
        del self._passing[name]
        answer = self._passed[name] = Passed(name, self.life, tuple(sorted(passing.hosts)))
        return [Send(passing.owner, answer)]

    def arrived(self, what: object, go_on: Callable[[Task], None]) -> None:
        for delegation in self.delegations:
            if what in delegation.arriving:
                delegation.arriving.discard(what)
                if not delegation.arriving:
                    waiting, delegation.waiting = delegation.waiting, []
                    for task in waiting:
                        go_on(task)

    def purge(self) -> None:
        """What has ended, and guests that have nothing left. An owner that seems gone may only be
        out of reach: it counts on what it brought, and on its being joined with what comes next."""
        for guest_of, stems in list(self.guests.items()):
            for name in stems.names():
                stem = self._peer.dataflow.stems.get(name)
                stems.purge(1 << 62 if stem is None else self._peer.frontier(stem), (name,))
            if not stems.size:
                del self.guests[guest_of]
                self._told.pop(guest_of, None)


def _median(ordered: list[Value], sizes: dict[Value, int]) -> Value:
    """The first value beyond half of the tuples; never the first of all."""
    half, seen = sum(sizes.values()) / 2, 0
    for value in ordered[:-1]:
        seen += sizes[value]
        if seen >= half:
            return ordered[ordered.index(value) + 1]
    return ordered[-1]
