"""A proxy looks after the queries of its users: it leases them, and fences off old owners.

Whoever runs a query delivers only while its proxy leases it. The proxy leases it to one epoch at a
time: to another one only when the last lease has surely run out, by clocks that may run fast or
slow. After a start it does not know what it had leased, and waits for as long. So at no time do two
providers deliver one query's results, whoever else still runs it; the higher epoch is the next to
be leased, and all lower ones are told to stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from thalweg.overlay.distribution.entries import Epoch, Query
from thalweg.overlay.distribution.messages import Claim, Leased, Renew, Superseded
from thalweg.overlay.protocol import Address, Effect, Message, Persist

DRIFT = 0.1  # more than two clocks differ in speed


@dataclass(slots=True)
class Guard:
    query: Query
    epoch: Epoch | None  # the highest that anybody took; None: nobody yet
    heard_us: int  # when its owner last spoke
    leased: Epoch | None = None
    leased_until_us: int = 0
    owner: Address | None = None  # who has it in that epoch; None: not heard yet in this life
    by: tuple[Address, ...] = ()  # the coordinators that sent it there, if this node had asked


class Guards:
    def __init__(self, lease_us: int) -> None:
        self.kept: dict[str, Guard] = {}
        self.withdrawn: dict[str, None] = {}
        self._lease_us = lease_us + round(lease_us * DRIFT)
        self._leases_from_us = 0

    def start(self, now_us: int, persisted: Mapping[str, bytes]) -> None:
        self._leases_from_us = now_us + self._lease_us
        for key, value in persisted.items():
            if key.startswith("guard "):
                query, epoch = msgspec.msgpack.decode(value, type=tuple[Query, Epoch | None])
                self.kept[query.name] = Guard(query, epoch, now_us)
            elif key.startswith("withdrawn "):
                self.withdrawn[key.removeprefix("withdrawn ")] = None

    def keep(self, now_us: int, query: Query, epoch: Epoch | None) -> list[Effect]:
        """Look after it from now on; one that was withdrawn stays so."""
        if query.name in self.withdrawn:
            return []
        if query.name not in self.kept:
            self.kept[query.name] = Guard(query, epoch, now_us)
            return [self._saved(query.name)]
        return [] if epoch is None else self.raise_to(query.name, epoch)

    def withdraw(self, name: str) -> list[Effect]:
        del self.kept[name]
        self.withdrawn[name] = None
        return [Persist(f"withdrawn {name}", b""), Persist(f"guard {name}", None)]

    def raise_to(self, name: str, epoch: Epoch) -> list[Effect]:
        """Somebody took it in this epoch."""
        guard = self.kept.get(name)
        if guard is None or (guard.epoch is not None and epoch <= guard.epoch):
            return []
        guard.epoch = epoch
        return [self._saved(name)]

    def renew(self, now_us: int, message: Renew) -> tuple[list[Message], list[Effect]]:
        """Answers to an owner, and what has to be written down first."""
        answers: list[Message] = []
        effects: list[Effect] = []
        leased: list[Claim] = []
        unknown: list[str] = []
        for name, epoch in message.claims:
            guard = self.kept.get(name)
            if guard is None and name not in self.withdrawn:
                unknown.append(name)
            elif guard is None or (guard.epoch is not None and epoch < guard.epoch):
                answers.append(Superseded(name, None if guard is None else guard.epoch))
            else:
                effects += self.raise_to(name, epoch)
                guard.heard_us = now_us
                if self._lease(now_us, guard, epoch):
                    leased.append((name, epoch))
        if leased or unknown:
            answers.append(Leased(message.stamp_us, tuple(leased), tuple(unknown)))
        return answers, effects

    def _lease(self, now_us: int, guard: Guard, epoch: Epoch) -> bool:
        free = now_us >= max(self._leases_from_us, guard.leased_until_us)
        if guard.leased != epoch and not free:
            return False
        guard.leased, guard.leased_until_us = epoch, now_us + self._lease_us
        return True

    def silent(self, now_us: int, for_us: int) -> list[Guard]:
        """Those whose owners have not been heard for so long."""
        return [g for g in self.kept.values() if now_us - g.heard_us > for_us]

    def _saved(self, name: str) -> Effect:
        guard = self.kept[name]
        return Persist(f"guard {name}", msgspec.msgpack.encode((guard.query, guard.epoch)))
