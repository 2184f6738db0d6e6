"""Statistics up the tree (COSMOS 3.3.8): every node tells its parent what is at and below it.

A coordinator keeps a copy of each child's table, and merges them with its own into what it reports
itself. All of this is rebuilt from the providers when a coordinator is new or has lost its memory:
a parent without a copy asks for everything, level by level. Splits, merges and changes of parents
(3.3.9) need nothing besides: who has a new parent reports to it.

Where two children run one query, the first coordinator above both sees it, and the owner of the
lower epoch is told to stop. A query that was there and is reported by nobody any more is an orphan.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from thalweg.overlay.distribution.entries import Entry, Epoch, Query, Running, rank
from thalweg.overlay.distribution.ledger import Copy, Ledger
from thalweg.overlay.distribution.messages import Noted, Report, Superseded
from thalweg.overlay.protocol import Address, Effect, Send


@dataclass(frozen=True, slots=True)
class Orphan:
    last: Running
    since_us: int
    custody: int  # by which number this node took it: whoever takes it over must name it


class Reporter:
    def __init__(self) -> None:
        self.ledger = Ledger()  # all at and below this node
        self.own: dict[str, Entry] = {}
        self.children: dict[Address, Copy] = {}
        self.orphans: dict[str, Orphan] = {}
        self.revision = 0  # another one whenever anything was said that is new
        self._doubled: dict[tuple[str, Address], Epoch] = {}  # (key, owner) -> what beats it
        self._life = 0
        self._custodies = 0
        self._told: tuple[Address, int] | None = None  # the parent, and how far it has heard

    def begin(self, life: int) -> None:
        self._life = self._custodies = life  # numbers of another life must not match

    def set_own(self, now_us: int, key: str, entry: Entry | None) -> None:
        before = self.own.get(key)
        if entry == before:
            return
        if entry is None:
            del self.own[key]
        else:
            self.own[key] = entry
        self._settle(now_us, key)
        if entry is None:
            self.orphans.pop(key, None)  # this node knows why it is gone

    def adopt(self, now_us: int, query: Query, epoch: Epoch, owner: Address) -> None:
        """An orphan that a child hands up; unless it is known here where it runs.

        One that is here already is taken again: the other lets go of it now, and a late word by
        which the other had taken it from here must not count.
        """
        key = f"q {query.name}"
        if key in self.ledger.entries:
            return
        found = Running(query, epoch, owner, query.weight)
        before = self.orphans.get(key)
        if before is None:
            self._orphaned(now_us, key, found)
        else:
            last = max(before.last, found, key=rank)
            self._orphaned(before.since_us, key, last)

    def _orphaned(self, since_us: int, key: str, last: Running) -> None:
        self._custodies += 1
        self.orphans[key] = Orphan(last, since_us, self._custodies)

    def let_go(self, name: str, custody: int) -> None:
        """Somebody else has the orphan now, whom it was handed to under this number."""
        orphan = self.orphans.get(f"q {name}")
        if orphan is not None and orphan.custody == custody:
            del self.orphans[f"q {name}"]

    # --- children ---

    def heard(self, now_us: int, child: Address, report: Report) -> Noted:
        copy = self.children.get(child)
        before: list[str] = []
        if copy is None or copy.life != report.life:
            before = [] if copy is None else list(copy.entries)
            copy = self.children[child] = Copy(report.life)
        for key in dict.fromkeys([*before, *copy.take(report)]):
            self._settle(now_us, key)
        return Noted(report.life, copy.version)

    def keep_only(self, now_us: int, children: Container[Address]) -> None:
        for gone in [c for c in self.children if c not in children]:
            for key in self.children.pop(gone).entries:
                self._settle(now_us, key)

    def below(self, child: Address) -> list[Entry]:
        copy = self.children.get(child)
        return [] if copy is None else list(copy.entries.values())

    def _settle(self, now_us: int, key: str) -> None:
        """Of all that is said about something the newest counts."""
        self.revision += 1
        said = [c.entries[key] for c in self.children.values() if key in c.entries]
        if key in self.own:
            said.append(self.own[key])
        before = self.ledger.entries.get(key)
        newest = max(said, key=rank) if said else None
        self.ledger.put(key, newest)
        if newest is None:
            if isinstance(before, Running):
                self._orphaned(now_us, key, before)
            return
        self.orphans.pop(key, None)
        if isinstance(newest, Running) and len(said) > 1:
            for other in said:
                if isinstance(other, Running) and other.epoch < newest.epoch:
                    self._doubled[key, other.owner] = newest.epoch

    def to_stop(self) -> list[Effect]:
        """Word to those who run what somebody else runs in a higher epoch, until it shows."""
        effects: list[Effect] = []
        for (key, owner), epoch in list(self._doubled.items()):
            said = [c.entries.get(key) for c in self.children.values()] + [self.own.get(key)]
            lower = [s for s in said if isinstance(s, Running) and s.epoch < epoch]
            if any(s.owner == owner for s in lower):
                effects.append(Send(owner, Superseded(lower[0].query.name, epoch)))
            else:
                del self._doubled[key, owner]
        return effects

    # --- the parent ---

    def report(self, parent: Address) -> Effect:
        if self._told is None or self._told[0] != parent:
            self._told = (parent, 0)
        return Send(parent, self.ledger.report(self._life, self._told[1]))

    def noted(self, parent: Address, answer: Noted) -> None:
        if answer.life == self._life and self._told is not None and self._told[0] == parent:
            self._told = (parent, answer.until)
            self.ledger.told(answer.until)
