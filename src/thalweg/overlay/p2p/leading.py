"""What a stream's leader wants decided next, made of what sources and askers say.

Nothing of it counts before a majority has it: answers speak of what is decided.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from thalweg.overlay.p2p.register import Member, SourceEntry, StreamState
from thalweg.overlay.p2p.stream_messages import Body, Look, Register, Report, Status, Watch
from thalweg.overlay.protocol import Address
from thalweg.overlay.query_table import QueryTable

_ANSWER_EVERY_US = 2_000_000  # reports; what a source must know at once is told at once
_WATCH_US = 10_000_000  # an asker is told of each new frontier for so long


class Draft:
    __slots__ = (
        "_answered",
        "_committed",
        "_done",
        "_heard",
        "_new",
        "_now_us",
        "_useless",
        "_waiting",
        "_watchers",
        "entries",
        "members",
    )

    def __init__(self, committed: StreamState, now_us: int) -> None:
        self.entries = dict(committed.sources)
        self.members: tuple[Member, ...] | None = None  # wanted, where others than now
        self._committed = committed
        self._heard = dict.fromkeys(self.entries, now_us)
        self._new: dict[str, None] = {}  # not admitted yet
        self._done: dict[str, int] = {}
        self._waiting: dict[Address, None] = {}
        self._watchers: dict[Address, int] = {}
        self._answered: dict[Address, int] = {}
        self._useless: set[tuple[str, int, Address]] = set()  # have no copies of a source
        self._now_us = now_us

    # --- what is said ---

    def take(self, now_us: int, client: Address, body: Body, table: QueryTable) -> None:
        self._now_us = now_us
        match body:
            case Register(source, copied):
                if source not in self.entries:
                    self.entries[source] = SourceEntry(client, 1, 0, copied=copied)
                    self._heard[source] = now_us
                    self._new[source] = None
                self._waiting[client] = None
            case Report():
                self._reported(now_us, client, body, table)
            case Watch(query, done):
                self._done[query] = max(done, self._done.get(query, done))
                self._watchers[client] = now_us + _WATCH_US

    def _reported(self, now_us: int, client: Address, report: Report, table: QueryTable) -> None:
        entry = self.entries.get(report.source)
        if entry is None or (entry.epoch, entry.address) != (report.epoch, client):
            self._answered.pop(client, None)  # it does not know yet that it is not the speaker
            return
        self._heard[report.source] = now_us
        if report.done and len(self.entries) > 1:
            del self.entries[report.source]  # the last one stays: somebody has to pass time on
            return
        copies = report.copies or entry.copies
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
        )

    def fenced(self, source: str, epoch: int, heir: Address, has_it: bool) -> None:
        entry = self.entries.get(source)
        if entry is None or entry.epoch != epoch - 1:
            return
        if not has_it:
            self._useless.add((source, epoch, heir))
            return
        # The other holders stay in reserve until the heir has copies of its own.
        others = tuple([a for a in entry.copies if a != heir])
        self.entries[source] = SourceEntry(
            heir, epoch, entry.frontier, others, entry.horizons, True, entry.turn
        )
        self._heard[source] = self._now_us
        self._waiting[heir] = None
        self._waiting[entry.address] = None

    def lost(
        self, now_us: int, after_us: int, is_down: Callable[[Address], bool]
    ) -> list[tuple[str, int, Address]]:
        """Sources that report no more, each with its next epoch and who may speak for it."""
        self._now_us = now_us
        found = []
        for source, entry in list(self.entries.items()):
            if now_us - self._heard.setdefault(source, now_us) < after_us:
                continue
            if entry.copied and entry.epoch == 1 and not entry.copies:
                del self.entries[source]  # nothing of it was ever accepted
                continue
            heirs = [a for a in entry.copies if (source, entry.epoch + 1, a) not in self._useless]
            alive = [a for a in heirs if not is_down(a)]
            if alive:
                found.append((source, entry.epoch + 1, alive[0]))
        return found

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
        changed = changed or asleep != committed.asleep
        state = StreamState(
            committed.version,
            members,
            before,
            frontier,
            committed.list_version + changed,
            dict(self.entries),
            horizons,
            asleep,
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
        self._committed = committed
        watchers = [a for a, until in self._watchers.items() if until > self._now_us]
        told = dict.fromkeys((*self._waiting, *(watchers if moved else ())))
        self._waiting.clear()
        return list(told)

    # --- answers ---

    def answers_now(self, body: Body) -> bool:
        match body:
            case Look() | Watch():
                return True
            case Report(source, epoch, _, copies):
                known = self._committed.sources.get(source)
                if known is None or known.epoch != epoch or known.copies != copies:
                    return True
                last_us = self._answered.get(known.address)
                return last_us is None or self._now_us - last_us >= _ANSWER_EVERY_US
            case Register(source):
                return source in self._committed.sources

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
        )


def _speakers(entries: dict[str, SourceEntry]) -> dict[str, tuple[int, Address]]:
    return {s: (e.epoch, e.address) for s, e in entries.items()}
