"""The catalogue of a network: streams, views, queries and the like, known at every node.

Entries change, and each has one writer, its owner: a stream's home, a query's proxy. Therefore
query spreading and its gossip do not serve here. Their records are written once, by anybody, under
ids that are never used again, and there are two states of each; here a name has a history. What
does fit is taken over: digests of tables by buckets, and asking one whose table differs.

Messages: News, from the owner to every member that is up, at once. What failures left out is
repaired in pairs: Compare (a digest), Listing (versions in the buckets that differ), Give. A pair
compares when they first hear that the other is up, when news shows that their tables differ, and
at random every now and then (this alone reaches nodes beyond the capacity of membership's view).

Requests: Put, Drop, Forget. Deliveries: Changed, Refused. To read: `entries()`, `names()`,
`entry()`.

- A Put is durable at its owner when it is answered. The owner alone changes or drops it.
- A name that another living entry is known to have is refused. Two Puts that could not know of each
  other both stand: `names.py` says which is which.
- Tombstones stay for ever: a node may come back after any time with the entry on its disk. They
  take as many bytes as their names.
- What a node defined that is gone for good is dropped when an operator says so (Forget): what it
  wrote up to a version is buried. A node that comes back nevertheless writes what it has once more,
  as newly defined: whoever took a name in the meantime keeps it.
- An owner that lost its disk learns its entries from the others again. What it wrote meanwhile
  under the same name it writes once more, above the versions of old.

Promise: nothing is invented; no node goes back to an earlier version; what was dropped stays so. At
each node, every living entry has one name and every name one entry. Once quiet, all nodes that run
have the same entries, with all that their owners' disks and any other node's held.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from thalweg.overlay.catalogue.entry import (
    KINDS,
    Entry,
    Kind,
    Loss,
    grave,
    next_version,
    tombstone,
)
from thalweg.overlay.catalogue.messages import (
    MESSAGES,
    Changed,
    Drop,
    Forget,
    Give,
    News,
    Put,
    Refused,
)
from thalweg.overlay.catalogue.names import holders, visible_names
from thalweg.overlay.catalogue.repair import CatalogueSettings, Repair
from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Membership, Up
from thalweg.overlay.protocol import (
    Address,
    Call,
    Deliver,
    Effect,
    Event,
    Heard,
    Init,
    Message,
    Persist,
    Receive,
    Send,
    SetTimer,
    TimerFired,
)

LONGEST_NAME = 200
LARGEST_BYTES = 1 << 20  # text and extra of one entry

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Entry).decode


class Catalogue(Repair):
    name = "catalogue"
    messages: ClassVar[tuple[type[Message], ...]] = MESSAGES
    listens_to: ClassVar[tuple[str, ...]] = ("membership",)

    def __init__(self, membership: Membership, settings: CatalogueSettings | None = None) -> None:
        super().__init__(membership, settings or CatalogueSettings())
        self._own: Address = ""
        self._disk = 0  # names the disk on which this node writes
        self._names: tuple[int, dict[str, Entry]] = (-1, {})  # as of this number of changes
        self._changes = 0

    # --- what others of this node may read ---

    def entries(self) -> list[Entry]:
        """All that stand, by name and owner."""
        return sorted(self.table.standing(), key=lambda e: e.key)

    def names(self) -> dict[str, Entry]:
        """What each name means here; every living entry has one."""
        if self._names[0] != self._changes:
            self._names = (self._changes, visible_names(self.table.standing()))
        return dict(self._names[1])

    def entry(self, name: str, owner: Address | None = None) -> Entry | None:
        """What an owner (this node, if none is named) defined under a name, if it stands."""
        found = self.table.get((name, self._own if owner is None else owner))
        return found if found is not None and self.table.stands(found) else None

    # --- events ---

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, Receive):
            return self._received(event.sender, event.message)
        if isinstance(event, TimerFired):
            return self._compare_now() if event.key == "compare" else self._ask_now()
        if isinstance(event, Call):
            return self._called(event.request)
        if isinstance(event, Heard):
            return self._ask_soon(event.value.address) if isinstance(event.value, Up) else []
        if isinstance(event, Init):
            return self._init(event)
        return []

    def _init(self, event: Init) -> list[Effect]:
        self._own, self._generator = event.address, Generator(event.seed)
        for key, value in event.persisted.items():
            if key != "disk":
                self.table.merge(_decode(value))
        effects: list[Effect] = [SetTimer("compare", self._period_us())]
        known = event.persisted.get("disk")
        if known is None:
            self._disk = self._generator.bits() >> 1
            effects.append(Persist("disk", b"%d" % self._disk))
        else:
            self._disk = int(known)
        return effects

    # --- requests of this node's own ---

    def _called(self, request: object) -> list[Effect]:
        if isinstance(request, Put):
            return self._put(request)
        if isinstance(request, Drop):
            return self._drop(request.name)
        if isinstance(request, Forget):
            return self._forget(request.owner)
        raise TypeError(f"the catalogue can't {request!r}")

    def _put(self, put: Put) -> list[Effect]:
        why = _why_not(put)
        known = self.entry(put.name)
        version = self.table.clock + 1
        if known is None:  # a new life
            holder = holders(self.table.named(put.name)).get(put.name)
            if why is None and holder is not None:
                why = f"there is a {holder.kind} of this name at {holder.owner}"
            born, renamed, lost_to = version, False, None
        else:
            born, renamed, lost_to = known.born, known.renamed, known.lost_to
        if why is not None:
            return [Deliver(Refused(put.name, why))]
        kind: Kind = put.kind  # type: ignore[assignment]  # checked by _why_not
        return self._write(
            Entry(
                name=put.name,
                kind=kind,
                text=put.text,
                owner=self._own,
                version=version,
                born=born,
                disk=self._disk,
                extra=put.extra,
                renamed=renamed,
                lost_to=lost_to,
            )
        )

    def _drop(self, name: str) -> list[Effect]:
        plain = name.removesuffix(f"@{self._own}")
        known = self.entry(plain)
        if known is None:
            others = self.table.named(plain)
            at = f"; only {others[0].owner} can drop it" if others else ""
            return [Deliver(Refused(name, f"this node defined nothing of this name{at}"))]
        return self._write(tombstone(known, self.table.clock + 1, self._disk))

    def _forget(self, owner: Address) -> list[Effect]:
        why = None
        if owner == self._own or owner in self._membership.up():
            why = "it runs: what it defined is dropped there"
        elif not any(e.owner == owner for e in self.table.standing()):
            why = "nothing that it defined stands"
        if why is not None:
            return [Deliver(Refused(owner, why))]
        buried = grave(owner, self.table.clock + 1)
        return self._bury(buried) + self._tell(buried)

    def _write(self, entry: Entry) -> list[Effect]:
        """As the owner: durable here, then told to everybody."""
        return self._keep(entry) + self._tell(entry)

    def _tell(self, entry: Entry) -> list[Effect]:
        news = News(entry, self.table.hash)
        return [Send(a, news) for a in self._membership.up()]

    # --- what others say ---

    def _received(self, sender: Address, message: Message) -> list[Effect]:
        if isinstance(message, News):
            effects = self._learn((message.entry,))
            if self.table.hash != message.table_hash:
                effects += self._ask_soon(sender)
            return effects
        if isinstance(message, Give):
            return self._learn(message.entries) + self._give_wanted(sender, message.wanted)
        return self._compared(sender, message)

    def _learn(self, entries: Iterable[Entry]) -> list[Effect]:
        effects: list[Effect] = []
        for entry in entries:
            if entry.is_grave:
                effects += self._bury(entry)
                continue
            effects += self._own_of_old(entry) if entry.owner == self._own else self._keep(entry)
            effects += self._take_back(entry) + self._give_way(entry.name)
        return effects

    def _bury(self, buried: Entry) -> list[Effect]:
        stood = [e for e in self.table.standing() if e.owner == buried.owner]
        if not self.table.merge(buried):
            return []
        self._changes += 1
        effects: list[Effect] = [Persist(buried.full_name, _encode(buried))]
        for entry in stood:
            if self.table.stands(entry):
                continue
            if buried.owner == self._own and entry.disk == self._disk:
                effects += self._define_again(entry)
            else:
                gone = tombstone(entry, entry.version, entry.disk)
                effects.append(Deliver(Changed(gone)))
        return effects

    def _define_again(self, entry: Entry) -> list[Effect]:
        """This node was taken to be gone for good, and is not."""
        version = self.table.clock + 1
        again = msgspec.structs.replace(
            entry, version=version, born=version, renamed=False, lost_to=None
        )
        return self._write(again) + self._give_way(entry.name)

    def _own_of_old(self, entry: Entry) -> list[Effect]:
        """An own word from somebody else, above what is known here: this node lost its disk."""
        known = self.table.get(entry.key)
        if known is not None and known.rank >= entry.rank:
            return []
        if known is not None and known.disk == self._disk != entry.disk:
            return self._write(next_version(known, max(entry.version, self.table.clock) + 1))
        return self._keep(entry)

    def _give_way(self, name: str) -> list[Effect]:
        """The owner of an entry that comes second says so, and this stands from then on."""
        own = self.entry(name)
        if own is None or own.renamed:
            return []
        first, version = holders(self.table.named(name))[name], self.table.clock + 1
        if first is own:
            return []
        loss = Loss(first.owner, first.born, version)
        return self._write(
            msgspec.structs.replace(
                own, version=version, disk=self._disk, renamed=True, lost_to=loss
            )
        )

    def _take_back(self, word: Entry) -> list[Effect]:
        """An own entry had given way to one that was dropped before it could be known there."""
        own = self.entry(word.name)
        if own is None or own.lost_to is None or not own.lost_to.is_void(word):
            return []
        version = self.table.clock + 1
        return self._write(
            msgspec.structs.replace(
                own, version=version, disk=self._disk, renamed=False, lost_to=None
            )
        )

    def _keep(self, entry: Entry) -> list[Effect]:
        if not self.table.merge(entry):
            return []
        self._changes += 1
        effects: list[Effect] = [Persist(entry.full_name, _encode(entry))]
        if entry.dropped or self.table.stands(entry):
            effects.append(Deliver(Changed(entry)))
        return effects


def _why_not(put: Put) -> str | None:
    if not put.name or "@" in put.name or len(put.name) > LONGEST_NAME:
        return f"a name has 1 to {LONGEST_NAME} characters and no @"
    if put.kind not in KINDS:
        return f"{put.kind!r} is none of {', '.join(KINDS)}"
    if (size := len(put.text.encode()) + len(put.extra)) > LARGEST_BYTES:
        return f"an entry has at most {LARGEST_BYTES} bytes, not {size}"
    return None
