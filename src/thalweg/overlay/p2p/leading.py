"""What a stream's leader wants decided next, made of what sources and askers say.

Nothing of it counts before a majority has it: answers speak of what is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from thalweg.overlay.p2p.register import (
    Ballot,
    Disk,
    Loss,
    Member,
    SourceEntry,
    StreamState,
    address_of,
)
from thalweg.overlay.p2p.stream_messages import Body, Fenced, Look, Register, Report, Status, Watch
from thalweg.overlay.protocol import Address
from thalweg.overlay.query_table import QueryTable

_ANSWER_EVERY_US = 2_000_000  # reports; what a source must know at once is told at once
_PATIENCE = 3  # times as long is waited for a source whose node seems to run
_WATCH_US = 10_000_000  # an asker is told of each new frontier for so long


class Draft:
    __slots__ = (
        "_answered",
        "_committed",
        "_done",
        "_heard",
        "_lost",
        "_new",
        "_now_us",
        "_rates",
        "_tended",
        "_useless",
        "_waiting",
        "_wanted",
        "_watchers",
        "ballot",
        "entries",
        "members",
    )

    def __init__(self, committed: StreamState, now_us: int, ballot: Ballot) -> None:
        self.ballot = ballot  # that its leader leads by: it ends with it
        self.entries = dict(committed.sources)
        self.members: tuple[Member, ...] | None = None  # wanted, where others than now
        self._committed = committed
        self._heard = dict.fromkeys(self.entries, now_us)
        self._lost = dict(committed.lost)
        self._new: dict[str, None] = {}  # not admitted yet
        self._done: dict[str, int] = {}
        self._waiting: dict[Address, None] = {}
        self._watchers: dict[Address, int] = {}
        self._wanted = 0  # by askers whose other streams are further
        self._answered: dict[Address, int] = {}
        self._useless: set[tuple[str, int, Disk]] = set()  # have no copies of a source
        self._now_us = now_us
        self._rates: dict[str, float] = {}
        self._tended = 0  # the version that was decided when it was last tended

    # --- what is said ---

    def take(self, now_us: int, client: Address, body: Body, table: QueryTable) -> None:
        self._now_us = now_us
        match body:
            case Register(source, copied):
                if source not in self.entries and source not in self._lost:
                    self.entries[source] = SourceEntry(client, 1, 0, copied=copied)
                    self._heard[source] = now_us
                    self._new[source] = None
                self._waiting[client] = None
            case Report():
                self._reported(now_us, client, body, table)
            case Watch(query, done, wanted):
                self._done[query] = max(done, self._done.get(query, done))
                self._wanted = max(wanted, self._wanted)
                self._watchers[client] = now_us + _WATCH_US

    def _reported(self, now_us: int, client: Address, report: Report, table: QueryTable) -> None:
        entry = self.entries.get(report.source)
        if entry is None or (entry.epoch, entry.address) != (report.epoch, client):
            self._answered.pop(client, None)  # it does not know yet that it is not the speaker
            return
        self._heard[report.source] = now_us
        self._rates[report.source] = report.rate
        if report.done and len(self.entries) > 1:
            del self.entries[report.source]  # the last one stays: somebody has to pass time on
            return
        copies, copies_at = entry.copies, entry.copies_at
        # Reports overtake each other. One that was made before the present copies were heard of is
        # older than they are; the source may have given up its holders since.
        if report.copies and report.copies_since >= copies_at and report.copies != copies:
            copies, copies_at = report.copies, self._committed.version + 1
        if copies != entry.copies or report.turn > entry.turn:
            self._waiting[client] = None
        undecided = {q: h for q, h in report.horizons.items() if q not in self._committed.horizons}
        frontier = max(entry.frontier, report.frontier)
        self.entries[report.source] = SourceEntry(
            entry.address,
            entry.epoch,
            frontier,
            copies,
            undecided,
            entry.copied,
            max(entry.turn, report.turn),
            entry.end,
            copies_at,
        )

    def fenced(self, heir: Address, answer: Fenced) -> None:
        source, epoch, has_it = answer.source, answer.epoch, answer.has_it
        entry = self.entries.get(source)
        if entry is None or entry.epoch != epoch - 1:
            return
        if not has_it or answer.disk not in entry.copies:
            # A disk that is not listed (any more) may lack what was accepted since: the source was
            # there after all and has gone on with other holders, or the holder has lost its disk.
            without = [d for d in entry.copies if address_of(d) == heir]
            self._useless.update((source, epoch, d) for d in without)
            return
        # What the old speaker promised beyond the stream's frontier is the heir's to promise again:
        # nobody can tell it which of its tuples that rested on. The other holders stay in reserve
        # until the heir has copies of its own.
        others = tuple([d for d in entry.copies if d != answer.disk])
        end = answer.end if entry.end < 0 else min(entry.end, answer.end)
        self.entries[source] = SourceEntry(
            heir,
            epoch,
            self._committed.frontier,
            others,
            entry.horizons,
            True,
            entry.turn,
            end,
            self._committed.version + 1,
        )
        self._heard[source] = self._now_us
        self._waiting[heir] = None
        self._waiting[entry.address] = None

    def lost(
        self,
        now_us: int,
        after_us: int,
        is_down: Callable[[Address], bool],
        gone: Collection[Address],
    ) -> list[tuple[str, int, Address]]:
        """Sources that report no more, each with its next epoch and who may speak for it. Where
        nobody may, since its node and all who had copies are gone for good, it is given up."""
        self._now_us = now_us
        found = []
        for source, entry in list(self.entries.items()):
            silent_us = now_us - self._heard.setdefault(source, now_us)
            # Who runs may have been held up; or the leader was, and has not read its mail yet.
            patience = 1 if is_down(entry.address) else _PATIENCE
            if silent_us < patience * after_us:
                continue
            if entry.copied and entry.epoch == 1 and not entry.copies:
                del self.entries[source]  # nothing of it was ever accepted
                continue
            disks = [d for d in entry.copies if (source, entry.epoch + 1, d) not in self._useless]
            heirs = [address_of(d) for d in disks]
            alive = [a for a in heirs if not is_down(a)]
            if alive:
                found.append((source, entry.epoch + 1, alive[0]))
            elif entry.address in gone and all(a in gone for a in heirs):
                del self.entries[source]
                self._lost[source] = Loss(entry.address, tuple(self._committed.horizons))
        return found

    def unaware(self, now_us: int) -> list[Address]:
        """Heirs that don't report: the word that they speak for a source now may have been lost,
        and who has no source of the stream asks for nothing."""
        self._now_us = now_us
        silent = [
            e.address
            for s, e in self._committed.sources.items()
            if e.epoch > 1 and now_us - self._heard.get(s, now_us) >= _ANSWER_EVERY_US
        ]
        return [
            a
            for a in dict.fromkeys(silent)
            if now_us - self._answered.get(a, -_ANSWER_EVERY_US) >= _ANSWER_EVERY_US
        ]

    # --- what follows ---

    def next_state(self, committed: StreamState) -> StreamState | None:
        """None where nothing has changed."""
        frontier = self.issued(committed)
        for source in self._new:
            if source in self.entries:
                entry = self.entries[source]
                self.entries[source] = msgspec.structs.replace(entry, frontier=frontier)
        self._new.clear()
        horizons = dict(committed.horizons)
        candidates = dict.fromkeys(q for e in self.entries.values() for q in e.horizons)
        for query in candidates:
            starts = [e.horizons.get(query) for e in self.entries.values()]
            if query not in horizons and None not in starts:
                horizons[query] = max(h for h in starts if h is not None)
        before: tuple[Member, ...] = ()
        members = committed.members
        if self.members is not None and not committed.before and self.members != members:
            before, members = members, self.members
        self.members = None
        asleep = bool(self.entries) and all(e.is_idle for e in self.entries.values())
        changed = _speakers(self.entries) != _speakers(committed.sources)
        # Who hears late that it sleeps makes more than it has to; that it woke, all have to hear.
        changed = changed or (committed.asleep and not asleep)
        state = StreamState(
            committed.version,
            members,
            before,
            frontier,
            committed.list_version + changed,
            dict(self.entries),
            horizons,
            asleep,
            dict(self._lost),
        )
        if state == committed:
            return None
        return msgspec.structs.replace(state, version=committed.version + 1)

    def issued(self, committed: StreamState) -> int:
        """The frontier: the least of what was promised by those admitted."""
        promised = [e.frontier for s, e in self.entries.items() if s not in self._new]
        return max(committed.frontier, min(promised, default=committed.frontier))

    def decided(self, committed: StreamState) -> list[Address]:
        """Whom to tell."""
        moved = committed.frontier > self._committed.frontier
        moved = moved or committed.lost != self._committed.lost
        self._committed = committed
        watchers = [a for a, until in self._watchers.items() if until > self._now_us]
        told = dict.fromkeys((*self._waiting, *(watchers if moved else ())))
        self._waiting.clear()
        return list(told)

    def is_quiet(self) -> bool:
        """Whether nothing was decided since this was last asked."""
        tended, self._tended = self._tended, self._committed.version
        return tended == self._tended

    # --- answers ---

    def answers_now(self, body: Body) -> bool:
        match body:
            case Look() | Watch():
                return True
            case Report(source, epoch, frontier, copies, is_idle=is_idle):
                known = self._committed.sources.get(source)
                if is_idle and frontier < self.wanted:
                    return True
                if known is None or known.epoch != epoch or known.copies != copies:
                    return True
                last_us = self._answered.get(known.address)
                return last_us is None or self._now_us - last_us >= _ANSWER_EVERY_US
            case Register(source):
                return source in self._committed.sources or source in self._committed.lost

    @property
    def wanted(self) -> int:
        """How far idle sources should go: as far as the others, here or in a query's streams."""
        return max(self._wanted, *(e.frontier for e in self.entries.values()), 0)

    def status(self, stream: str, client: Address, table: QueryTable) -> Status:
        state = self._committed
        self._answered[client] = self._now_us
        records = [table.get(q) for q in state.horizons]
        mine = {s: e.copies for s, e in state.sources.items() if e.address == client}
        return Status(
            stream,
            state.frontier,
            state.list_version,
            tuple([(s, e.epoch, e.address) for s, e in state.sources.items()]),
            state.horizons,
            dict(self._done),
            mine,
            tuple([r for r in records if r is not None]) if mine else (),
            state.asleep,
            {s: state.sources[s].turn for s in mine},
            self.wanted,
            {s: e.end for s, e in state.sources.items() if e.end >= 0},
            state.lost,
            sum((r for source, r in self._rates.items() if source in self.entries), 0.0),
            state.version,
            tuple([m.address for m in state.members]),
        )


def _speakers(entries: dict[str, SourceEntry]) -> dict[str, tuple[int, Address]]:
    return {s: (e.epoch, e.address) for s, e in entries.items()}
