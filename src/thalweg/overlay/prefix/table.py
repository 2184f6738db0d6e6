"""A routing table by digits: for each prefix of the own id, the nodes that go on differently.

Row r, column d holds nodes that share r digits with this one and have d next. Of the many that fit
the upper rows, near ones are kept (Plaxton's locality: short hops first, long ones last); a few per
slot, so that the loss of one does not leave it empty.

Which slots are empty decides where a key belongs (surrogate routing, Tapestry): from a digit that
nobody has, one goes on to the next that somebody has. Nodes that agree on which slots are empty
agree on every key's owner, without looking at any other node.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator

from thalweg.overlay.protocol import Address
from thalweg.overlay.routing import ID_BITS, id_of

DIGIT_BITS = 4
BASE = 1 << DIGIT_BITS
ROWS = ID_BITS // DIGIT_BITS
PER_SLOT = 3

Slot = tuple[int, int]  # row, digit


def digits(number: int) -> tuple[int, ...]:
    """From the most significant on."""
    return tuple(number >> (ID_BITS - DIGIT_BITS * (r + 1)) & (BASE - 1) for r in range(ROWS))


class PrefixTable:
    __slots__ = ("_digits", "_places", "_rows", "_slots", "address")

    def __init__(self, address: Address) -> None:
        self.address = address
        self._digits = digits(id_of(address))
        # The nearest first; a slot that is empty is not there.
        self._slots: dict[Slot, list[tuple[int, Address]]] = {}
        self._places: dict[Address, Slot] = {}  # a cache: hashing is dear
        self._rows = 0  # beyond this row all slots are empty

    # --- what it holds ---

    def slot_of(self, address: Address) -> Slot:
        place = self._places.get(address)
        if place is None:
            theirs = digits(id_of(address))
            if theirs == self._digits:
                raise ValueError(f"{address} and {self.address} have one id: rename one of them")
            row = next(r for r in range(ROWS) if theirs[r] != self._digits[r])
            place = self._places[address] = (row, theirs[row])
        return place

    def __contains__(self, address: Address) -> bool:
        return any(a == address for _, a in self._slots.get(self.slot_of(address), ()))

    def has_room(self, address: Address) -> bool:
        return len(self._slots.get(self.slot_of(address), ())) < PER_SLOT

    def put(self, address: Address, distance_us: int) -> None:
        """A node that answers, so far away; the farthest of a slot makes room."""
        self.drop(address)
        slot = self.slot_of(address)
        held = self._slots.setdefault(slot, [])
        insort(held, (distance_us, address))
        del held[PER_SLOT:]
        self._rows = max(self._rows, slot[0] + 1)

    def drop(self, address: Address) -> None:
        slot = self.slot_of(address)
        held = [entry for entry in self._slots.get(slot, ()) if entry[1] != address]
        if held:
            self._slots[slot] = held
        elif self._slots.pop(slot, None) is not None:
            self._rows = max((row + 1 for row, _ in self._slots), default=0)

    def nearest(self, slot: Slot) -> Address | None:
        held = self._slots.get(slot)
        return held[0][1] if held else None

    def row(self, row: int) -> list[Address]:
        """The nearest of each slot, by digit."""
        slots = self._slots
        return [slots[row, digit][0][1] for digit in range(BASE) if (row, digit) in slots]

    def entries(self, row: int) -> list[Address]:
        """All of a row, by digit."""
        return [a for digit in range(BASE) for _, a in self._slots.get((row, digit), ())]

    @property
    def rows(self) -> int:
        return self._rows

    def shared_with(self, address: Address) -> Iterator[Address]:
        """What of this table also fits `address`'s: the rows of the prefix that both have."""
        for row in range(self.slot_of(address)[0] + 1):
            yield from (a for a in self.row(row) if a != address)

    def all(self) -> list[Address]:
        return [a for slot in sorted(self._slots) for _, a in self._slots[slot]]

    # --- routing ---

    def next_hop(self, key: int) -> Address | None:
        """One digit further towards the key's owner; None at the owner."""
        wanted = digits(key)
        for row in range(self._rows):
            digit = wanted[row]
            while digit != self._digits[row] and (row, digit) not in self._slots:
                digit = (digit + 1) % BASE
            if digit != self._digits[row]:
                return self.nearest((row, digit))
        return None
