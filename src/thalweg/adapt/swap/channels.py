"""Channels: what one node of a plan sends another, in order, each entry once.

A link between two nodes has a channel for each pair of their sites. The sender keeps entries on
disk until the receiver has them on its own; it sends those that were not answered again. The
receiver takes entries in order and ignores what it has and what comes too early. Frontiers need no
disk: they only grow, and are said again and again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from thalweg.adapt.swap.messages import Entry, Frontiers, Row
from thalweg.adapt.swap.query import NEVER
from thalweg.overlay.protocol import Address

Channel = tuple[int, int, Address]  # source node, target node, the other side's address


@dataclass(slots=True)
class Outgoing:
    source: int
    target: int
    address: Address
    window_rows: int
    last: int = 0  # the number of the newest entry
    acked: int = 0
    sent: int = 0
    answered: int = 0  # what was acknowledged at the last beat
    entries: dict[int, Entry] = field(default_factory=dict)  # not acknowledged yet
    room: tuple[int, ...] | None = None  # as last answered; None: nothing heard yet
    returned: tuple[int, int] = (0, 0)  # life of the other side, virtual tuples in it
    key: str = ""  # on disk

    def __post_init__(self) -> None:
        self.key = f"{self.source}/{self.target}/{self.address}"

    def append(self, entry: Entry) -> int:
        self.last += 1
        self.entries[self.last] = entry
        return self.last

    def room_for(self, stage: int) -> int:
        """How many rows with a footprint of this size may follow now."""
        limit = self.window_rows
        if self.room is not None:
            limit = min(limit, self.room[stage - 1] if stage <= len(self.room) else limit)
        return limit - (self.last - self.acked)

    def take_answer(self, upto: int, room: tuple[int, ...]) -> tuple[list[int], int]:
        """The entries that can go now, and how many rows were among them."""
        if upto < self.acked:
            return [], 0
        self.room = room
        gone = list(range(self.acked + 1, min(upto, self.last) + 1))
        rows = 0
        for number in gone:
            rows += type(self.entries.pop(number)) is Row
        self.acked = max(self.acked, min(upto, self.last))
        self.sent = max(self.sent, self.acked)
        return gone, rows


@dataclass(slots=True)
class Incoming:
    source: int
    target: int
    address: Address
    received: int = 0
    frontiers: dict[int, int] = field(default_factory=dict)
    waiting: tuple[int, Frontiers] | None = None  # frontiers that need entries not yet here
    is_choice: bool = False  # the other end is an RMO, and wants to know what its rows gave
    told_room: int = 1  # the least that was told last
    newest: int = 0  # the number of the last row that came
    returned: float = 0.0  # rows made of what came, in this life
    reported: int = 0
    key: str = ""  # on disk

    def __post_init__(self) -> None:
        self.key = f"{self.source}/{self.target}/{self.address}"

    def new_entries(self, first: int, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """Those that follow on what is here."""
        if first > self.received + 1:
            return ()
        return entries[self.received + 1 - first :]

    def hear_frontiers(self, needs: int, frontiers: Frontiers) -> bool:
        """Whether any has moved."""
        if needs > self.received:
            if self.waiting is None or self.waiting[0] <= needs:
                self.waiting = (needs, frontiers)
            return False
        moved = False
        for footprint, frontier in frontiers:
            if frontier > self.frontiers.get(footprint, NEVER):
                self.frontiers[footprint] = frontier
                moved = True
        return moved

    def catch_up(self) -> bool:
        if self.waiting is None or self.waiting[0] > self.received:
            return False
        needs, frontiers = self.waiting
        self.waiting = None
        return self.hear_frontiers(needs, frontiers)
