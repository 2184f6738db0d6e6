"""A routing table by digits: for each prefix of the own id, the nodes that go on differently.

Row r, column d holds nodes that share r digits with this one and have d next. Of the many that fit
the upper rows, near ones are kept (Plaxton's locality: short hops first, long ones last); a few per
slot, so that the loss of one does not leave it empty.

Which slots are empty decides where a key belongs (surrogate routing, Tapestry): from a digit that
nobody has, one goes on to the next that somebody has. Nodes that agree on which slots are empty
agree on every key's owner, without looking at any other node.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

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


@lru_cache(maxsize=1 << 16)  # hashing is dear, and tables ask for the same few again and again
def digits_of(address: Address) -> tuple[int, ...]:
    return digits(id_of(address))


class PrefixTable:
    __slots__ = ("_digits", "_rows", "_slots", "address")

    def __init__(self, address: Address) -> None:
        self.address = address
        self._digits = digits_of(address)
        self._slots: dict[Slot, dict[Address, int]] = {}  # -> distance
        self._rows = 0  # beyond this row all slots are empty

    # --- what it holds ---

    def slot_of(self, address: Address) -> Slot:
        theirs = digits_of(address)
        for row, (mine, other) in enumerate(zip(self._digits, theirs, strict=True)):
            if mine != other:
                return row, other
        raise ValueError(f"{address} and {self.address} have one id: rename one of them")

    def __contains__(self, address: Address) -> bool:
        return address != self.address and address in self._slots.get(self.slot_of(address), ())

    def has_room(self, address: Address) -> bool:
        return len(self._slots.get(self.slot_of(address), ())) < PER_SLOT

    def put(self, address: Address, distance_us: int) -> None:
        """A node that answers, so far away; the farthest of a slot makes room."""
        slot = self.slot_of(address)
        held = self._slots.setdefault(slot, {})
        held[address] = distance_us
        if len(held) > PER_SLOT:
            del held[max(held, key=lambda a: (held[a], a))]
        self._rows = max(self._rows, slot[0] + 1)

    def drop(self, address: Address) -> None:
        slot = self.slot_of(address)
        held = self._slots.get(slot, {})
        if held.pop(address, None) is not None and not held:
            del self._slots[slot]
            self._rows = max((row + 1 for row, _ in self._slots), default=0)

    def nearest(self, slot: Slot) -> Address | None:
        held = self._slots.get(slot)
        return min(held, key=lambda a: (held[a], a)) if held else None

    def row(self, row: int) -> list[Address]:
        """The nearest of each slot, by digit."""
        found = (self.nearest((row, digit)) for digit in range(BASE))
        return [address for address in found if address is not None]

    def entries(self, row: int) -> list[Address]:
        """All of a row, by digit."""
        return [a for digit in range(BASE) for a in self._slots.get((row, digit), ())]

    @property
    def rows(self) -> int:
        return self._rows

    def shared_with(self, address: Address) -> Iterator[Address]:
        """What of this table also fits `address`'s: the rows of the prefix that both have."""
        for row in range(self.slot_of(address)[0] + 1):
            yield from (a for a in self.row(row) if a != address)

    def all(self) -> list[Address]:
        return [a for slot in sorted(self._slots) for a in self._slots[slot]]

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
