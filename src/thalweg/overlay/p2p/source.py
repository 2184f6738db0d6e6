"""One source at a node: what it retains, what of it survives a restart, and how fast it is."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from thalweg.overlay.p2p.index_messages import EventTime
from thalweg.overlay.p2p.register import Disk
from thalweg.overlay.p2p.tuples import Tup
from thalweg.overlay.protocol import Address

_OF_LATE = 10_000  # tuples


class Meta(msgspec.Struct, frozen=True):
    """What survives a restart, beside the tuples."""

    stream: str
    id: str
    epoch: int
    floor: int
    next_seq: int
    reported_copies: tuple[Disk, ...]
    horizons: dict[str, int]
    is_heir: bool
    turn: int = 0
    time: EventTime | None = None
    newest: int = -1
    arrived: int = 0
    late: int = 0
    heard: int = 0
    reported_since: int = 0


class Batch(msgspec.Struct, frozen=True, array_like=True):
    newest: int  # instant of its tuples
    first: int
    upto: int  # it ends before this tuple

    def counts(self, end: int | None) -> bool | None:
        """Of a source whose tuples end there; None where a part of it does, or nobody knows."""
        if end is None or self.first < end < self.upto:
            return None
        return self.upto <= end


class Buried(msgspec.Struct, frozen=True, array_like=True):
    """A batch of a source that was passed on: whether it counts; None where nobody knows."""

    stream: str
    counts: bool | None


@dataclass(slots=True)
class Measured:
    """Tuples an instant, of late: what is long ago counts ever less."""

    tuples: float = 0.0
    instants: float = 0.0
    upto: int | None = None

    def take(self, count: int, newest: int) -> None:
        if self.upto is not None:
            self.tuples += count
            self.instants += max(0, newest - self.upto)
        self.upto = max(newest, self.upto or 0)
        if self.tuples > _OF_LATE:
            self.tuples, self.instants = self.tuples / 2, self.instants / 2

    @property
    def rate(self) -> float:
        return self.tuples / self.instants if self.instants else 0.0


@dataclass(slots=True)
class Kept:
    tup: Tup
    indexed: bool = False
    open: dict[int, None] = field(default_factory=dict)  # items that are not done


@dataclass(slots=True)
class Source:
    stream: str
    id: str
    epoch: int = 1
    floor: int = 0  # nothing below it will come
    next_seq: int = 0
    floor_on_disk: int = 0
    is_open: bool = False
    listed: int = 0  # since which version of its stream's list
    is_heir: bool = False  # of a lost source: nothing more will come
    resumes: bool = False  # after a restart: what it retains may have ended without it
    log: dict[int, Kept] = field(default_factory=dict)
    horizons: dict[str, int] = field(default_factory=dict)
    logged_copies: tuple[Disk, ...] | None = None  # as the register has them; None: not heard
    heard: int = 0  # the register's version that has them
    reported_copies: tuple[Disk, ...] = ()
    reported_since: int = 0  # what was heard when they were chosen
    copied: dict[Disk, int] = field(default_factory=dict)  # has all before
    disks: dict[Address, Disk] = field(default_factory=dict)  # of holders, as they last said
    accepted: int = 0  # all before it are
    turn: int = 0  # odd: idle, and the stream may sleep
    confirmed: int = 0  # the turn that the register has
    time: EventTime | None = None
    newest: int = -1  # instant of all tuples that were taken
    arrived: int = 0
    late: int = 0
    wanted: int = 0  # how far somebody waits for it, as the register says
    heard_us: int | None = None  # when something last came
    batches: dict[str, Batch] = field(default_factory=dict)  # that were taken
    busy: dict[int, None] = field(default_factory=dict)  # tuples that have not taken effect
    passed: int = 0  # of an heir: what is below took effect while another spoke for the source
    uncertain: int = 0  # tuples before this number may have taken effect before a restart
    measured: Measured = field(default_factory=Measured)

    @property
    def first(self) -> int:
        return next(iter(self.log), self.next_seq)

    @property
    def speaks(self) -> bool:
        """Whether it can say what takes part. After a restart it has to find out first: what it
        left out might have been acknowledged before."""
        early = (self.log[seq].indexed for seq in self.busy if seq < self.uncertain)
        return self.is_open and all(early)

    @property
    def taking_part(self) -> list[Tup]:
        """What an owner has to know of: all that was indexed, here or by who spoke before."""
        return [k.tup for k in self.log.values() if k.indexed or k.tup.ts < self.passed]

    @property
    def meta(self) -> Meta:
        return Meta(
            self.stream,
            self.id,
            self.epoch,
            self.floor,
            self.next_seq,
            self.reported_copies,
            self.horizons,
            self.is_heir,
            self.turn,
            self.time,
            self.newest,
            self.arrived,
            self.late,
            self.heard,
            self.reported_since,
        )

    @staticmethod
    def restored(meta: Meta, tuples: list[Tup], batches: dict[str, Batch]) -> Source:
        source = Source(meta.stream, meta.id, meta.epoch, meta.floor, meta.next_seq, meta.floor)
        source.is_heir = meta.is_heir
        source.resumes = meta.is_heir or bool(meta.reported_copies)
        source.turn = meta.turn
        source.reported_copies = meta.reported_copies
        source.horizons = dict(meta.horizons)
        source.time, source.newest = meta.time, meta.newest
        source.arrived, source.late = meta.arrived, meta.late
        source.heard, source.reported_since = meta.heard, meta.reported_since
        source.batches = batches
        source.log = {t.seq: Kept(t) for t in sorted(tuples, key=lambda t: t.seq)}
        source.busy = dict.fromkeys(source.log)
        source.accepted = source.first
        source.uncertain = source.next_seq
        return source
