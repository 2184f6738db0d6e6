"""The home's side: who owns each native fragment, in which epoch, and for how long.

The home of a fragment is the node that its stream is delegated to: it routes the stream, so it has
to know the owner anyway. It is the one writer of that decision. An owner decides while it has a
lease of the present epoch; the next epoch begins when the owner has said that it stopped, or when
its lease is over for sure. Then the home runs the fragment itself.

Epochs of a home that has lost its disk begin above the old ones: they start with its clock. (A
clock that went back costs moves that come to nothing, never two owners: a lease is only given to
the owner that is written down, and a new home waits until old leases are over.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from thalweg.adapt.partners.messages import (
    Delegate,
    Fragment,
    GiveBack,
    Lease,
    Located,
    Renew,
    Stale,
    Transfer,
    Transferred,
)
from thalweg.adapt.partners.settings import Settings
from thalweg.overlay.protocol import Address, Effect, Persist, Send

EPOCHS_PER_US = 1024


class Record(msgspec.Struct, frozen=True):
    fragment: Fragment
    owner: Address  # "": nobody yet
    epoch: int
    upto: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


@dataclass(frozen=True, slots=True)
class Taken:
    """The home has to run this itself from now on; its state is lost, and inputs are replayed."""

    fragment: Fragment
    epoch: int
    upto: int
    first: bool  # nobody had it before


class Homes:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.own: Address = ""
        self.records: dict[str, Record] = {}
        self.until_us: dict[str, int] = {}  # before that, no other owner
        self.places: dict[str, Address] = {}  # of others' fragments, as their homes told
        self.rescued = 0

    def start(self, now_us: int, own: Address, persisted: dict[str, bytes]) -> None:
        self.own = own
        for name, encoded in persisted.items():
            self.records[name] = _decode(encoded)
            self.until_us[name] = now_us + self.settings.expiry_us  # of leases given before

    def delegate(self, now_us: int, request: Delegate) -> list[Effect]:
        effects: list[Effect] = []
        for fragment in request.fragments:
            if fragment.home != self.own:
                raise ValueError(f"the home of {fragment.name} is {fragment.home}, not {self.own}")
            known = self.records.get(fragment.name)
            if known is None:
                effects += self._write(Record(fragment, "", now_us * EPOCHS_PER_US, 0))
                self.until_us[fragment.name] = now_us + self.settings.expiry_us
        return effects

    def _write(self, record: Record) -> list[Effect]:
        self.records[record.fragment.name] = record
        return [Persist(f"home {record.fragment.name}", _encode(record))]

    # --- factors (6.2.1) ---

    def neighbouring_factors(self) -> dict[Address, int]:
        """How many pairs of neighbouring fragments this node shares with each other home."""
        found: dict[Address, int] = {}
        for record in self.records.values():
            for _, home in record.fragment.neighbours:
                if home != self.own:
                    found[home] = found.get(home, 0) + 1
        return found

    def abroad(self) -> dict[Address, int]:
        """How many native fragments run where."""
        found: dict[Address, int] = {}
        for record in self.records.values():
            if record.owner not in ("", self.own):
                found[record.owner] = found.get(record.owner, 0) + 1
        return found

    # --- leases ---

    def renew(self, now_us: int, owner: Address, message: Renew) -> list[Effect]:
        good, effects = [], []
        places: dict[str, Address] = {}
        for name, epoch, upto in message.entries:
            record = self.records.get(name)
            if record is None or (record.owner, record.epoch) != (owner, epoch):
                effects.append(Send(owner, Stale(name, epoch)))
                continue
            if upto > record.upto:  # written down with the next epoch: to replay more is no harm
                self.records[name] = msgspec.structs.replace(record, upto=upto)
            self.until_us[name] = now_us + self.settings.expiry_us
            good.append((name, epoch))
            for other, home in record.fragment.neighbours:
                if (place := self.place_of(other, home)) != home:
                    places[other] = place
        lease = Lease(tuple(good), message.stamp_us, tuple(places.items()))
        return [*effects, Send(owner, lease)] if good else list(effects)

    def place_of(self, fragment: str, home: Address) -> Address:
        if home == self.own and fragment in self.records:
            return self.records[fragment].owner or home
        return self.places.get(fragment, home)

    def transfer(self, now_us: int, owner: Address, message: Transfer) -> list[Effect]:
        record = self.records.get(message.fragment)
        name, following = message.fragment, message.epoch + 1
        if record is not None and (record.owner, record.epoch) == (message.to, following):
            return [Send(owner, Transferred(name, following))]  # said before, not heard
        if record is None or (record.owner, record.epoch) != (owner, message.epoch):
            return [Send(owner, Stale(name, message.epoch))]
        self.until_us[name] = now_us + 2 * self.settings.expiry_us  # time to travel
        upto = max(record.upto, message.upto)
        effects = self._write(Record(record.fragment, message.to, following, upto))
        return [*effects, Send(owner, Transferred(name, following)), *self._tell([name])]

    # --- rescue ---

    def overdue(
        self, now_us: int, has: Callable[[str, int], bool]
    ) -> tuple[list[Effect], list[Taken]]:
        """What nobody can hold a lease on any more is run at home; `has`: if it is here already."""
        effects: list[Effect] = []
        taken: list[Taken] = []
        for name, record in list(self.records.items()):
            if record.owner == self.own and has(name, record.epoch):
                continue
            if now_us >= self.until_us[name]:
                self.rescued += record.owner != ""
                effects += self._take(now_us, record, record.upto, taken)
        return effects, taken

    def given_back(
        self, now_us: int, owner: Address, message: GiveBack
    ) -> tuple[list[Effect], list[Taken]]:
        record = self.records.get(message.fragment)
        taken: list[Taken] = []
        if record is None or (record.owner, record.epoch) != (owner, message.epoch):
            return [], taken
        return self._take(now_us, record, message.upto, taken), taken

    def _take(self, now_us: int, record: Record, upto: int, taken: list[Taken]) -> list[Effect]:
        name = record.fragment.name
        after = Record(record.fragment, self.own, record.epoch + 1, max(upto, record.upto))
        self.until_us[name] = now_us + self.settings.expiry_us
        taken.append(Taken(after.fragment, after.epoch, after.upto, record.owner == ""))
        return [*self._write(after), *self._tell([name])]

    # --- places of neighbours ---

    def _tell(self, names: list[str]) -> list[Effect]:
        told: dict[Address, list[tuple[str, Address]]] = {}
        for name in names:
            record = self.records[name]
            for home in dict.fromkeys(home for _, home in record.fragment.neighbours):
                if home != self.own:
                    told.setdefault(home, []).append((name, record.owner or self.own))
        return [Send(home, Located(tuple(entries))) for home, entries in told.items()]

    def tell_all(self) -> list[Effect]:
        return self._tell(list(self.records))
