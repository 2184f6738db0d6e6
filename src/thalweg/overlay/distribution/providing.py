"""What a provider runs: queries that it took, each in one epoch, and its leases on them."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

import msgspec

from thalweg.overlay.distribution.entries import Epoch, Query, Running
from thalweg.overlay.distribution.messages import Claim, Grant, Leased, Refused, Renew, Took
from thalweg.overlay.protocol import Address, Effect, Message, Persist, Send

CLAIMS_AT_ONCE = 200
_MOST_REMEMBERED = 10_000  # a grant that is long under way is fenced off by the proxy anyway


@dataclass(slots=True)
class Owned:
    query: Query
    epoch: Epoch
    weight: float
    leased_until_us: int = 0  # by this node's clock; after that, nothing is delivered

    def entry(self, owner: Address) -> Running:
        return Running(self.query, self.epoch, owner, self.weight)


class Holdings:
    def __init__(self, lease_us: int) -> None:
        self.owned: dict[str, Owned] = {}
        self._had: dict[str, Epoch | None] = {}  # late copies of old grants; None: withdrawn
        self._lease_us = lease_us

    def start(self, persisted: Mapping[str, bytes]) -> None:
        for key, value in persisted.items():
            if key.startswith("owned "):
                query, epoch, weight = msgspec.msgpack.decode(
                    value, type=tuple[Query, Epoch, float]
                )
                self.owned[query.name] = Owned(query, epoch, weight)

    def take(self, grant: Grant) -> tuple[Message, list[Effect], bool]:
        """An answer, and whether it was taken anew."""
        name = grant.query.name
        owned = self.owned.get(name)
        if owned is not None and grant.epoch <= owned.epoch:
            if grant.epoch == owned.epoch:
                return Took(name, grant.epoch), [], False
            return Refused(name, grant.epoch, owned.epoch), [], False
        if name in self._had:
            had = self._had[name]
            if had is None or grant.epoch <= had:
                return Refused(name, grant.epoch, had, is_over=had is not None), [], False
        self.owned[name] = Owned(grant.query, grant.epoch, grant.weight)
        saved = msgspec.msgpack.encode((grant.query, grant.epoch, grant.weight))
        return Took(name, grant.epoch), [Persist(f"owned {name}", saved)], True

    def drop(self, name: str, *, is_withdrawn: bool = False) -> list[Effect]:
        """Somebody else has it now, or nobody should."""
        had = self.owned.pop(name).epoch
        self._had.pop(name, None)
        self._had[name] = None if is_withdrawn else had
        if len(self._had) > _MOST_REMEMBERED:
            del self._had[next(iter(self._had))]
        return [Persist(f"owned {name}", None)]

    def is_superseded(self, name: str, epoch: Epoch | None) -> bool:
        owned = self.owned.get(name)
        return owned is not None and (epoch is None or epoch > owned.epoch)

    def renewals(self, now_us: int, resting: Container[str]) -> list[Effect]:
        """To every proxy, for all that is run for it; not for what is being handed over."""
        by_proxy: dict[Address, list[Claim]] = {}
        for name, owned in self.owned.items():
            if name not in resting:
                by_proxy.setdefault(owned.query.proxy, []).append((name, owned.epoch))
        return [
            Send(proxy, Renew(now_us, tuple(claims[i : i + CLAIMS_AT_ONCE])))
            for proxy, claims in by_proxy.items()
            for i in range(0, len(claims), CLAIMS_AT_ONCE)
        ]

    def leased(self, message: Leased, resting: Container[str]) -> None:
        """A lease counts from when it was asked for: the proxy counts from later on."""
        for name, epoch in message.claims:
            owned = self.owned.get(name)
            if owned is not None and owned.epoch == epoch and name not in resting:
                until_us = message.stamp_us + self._lease_us
                owned.leased_until_us = max(owned.leased_until_us, until_us)

    def delivers(self, now_us: int) -> list[str]:
        """What may be delivered now."""
        return [name for name, owned in self.owned.items() if owned.leased_until_us > now_us]
