"""Alerts: producers of a plan rest while nobody can use what they make.

Source: DHTJoin (seed 003) 4.4.2, Procedures 11 and 12: a join whose one input fails tells its other
inputs to suspend, and they tell theirs, unless another query needs them; when the input is back,
they resume. Procedure 12 forgets to resume where a second query came after the suspend. Here that
can't happen, because nothing is remembered but who wants what *now*: a consumer leases its demand,
operator by operator, and renews it. An operator is active while somebody leases it (or a query at
its own node wants it); demand goes down the plan when it goes from none to one, and back.

Messages: Demand (consumer to producer: wanted or not, renewed three times a lease), Status
(producer to consumer: able or not, in answer, and at once when it changes).

    able(o)      all inputs of o are able; an input that has not answered for a lease is not.
                 A source is able while its application says so.
    active(o)    a query at this node wants o, or a consumer's lease on o has not run out
    wanted(o, i) active(o), and all inputs of o but i are able: else what i makes would be in vain.
                 (Not i itself: who is not asked because it is not able could never come back.)

Promise: an operator is never active without a lease, and demand that is gone is forgotten within a
lease, however many messages are lost. After healing, an operator is active exactly if it is needed.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from thalweg.overlay.alerts.messages import (
    Demand,
    Install,
    Operator,
    Remove,
    Resumed,
    SetAble,
    Status,
    Suspended,
    Want,
)
from thalweg.overlay.alerts.running import Consumer, Running
from thalweg.overlay.protocol import (
    Address,
    Call,
    Deliver,
    Effect,
    Event,
    Init,
    Message,
    Persist,
    Receive,
    Send,
    SetTimer,
    TimerFired,
)

_SECOND_US = 1_000_000
_NEVER_US = -(1 << 62)  # before any stamp

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[Operator, tuple[str, ...], bool]).decode


class Alerts:
    name = "alerts"
    messages: ClassVar[tuple[type[Message], ...]] = (Demand, Status)
    listens_to: ClassVar[tuple[str, ...]] = ()

    def __init__(self, lease_us: int = 15 * _SECOND_US) -> None:
        if lease_us < 3:
            raise ValueError(f"a lease of {lease_us} µs can't be renewed three times")
        self._lease_us = lease_us
        self._running: dict[str, Running] = {}

    @property
    def active(self) -> list[str]:
        return sorted(name for name, o in self._running.items() if o.active)

    def overdue(self, now_us: int) -> list[str]:
        """Operators that are active on nothing but leases that ran out a renewal or more ago."""
        limit_us = now_us - self._lease_us // 3 - 1
        return sorted(
            name
            for name, o in self._running.items()
            if o.leases and not o.queries and max(o.leases.values()) < limit_us
        )

    @property
    def installed(self) -> dict[str, Operator]:
        return {name: o.operator for name, o in self._running.items()}

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, Receive):
            return self._received(now_us, event.sender, event.message)
        if isinstance(event, TimerFired):
            return self._renew(now_us)
        if isinstance(event, Call):
            return self._called(now_us, event.request)
        if isinstance(event, Init):
            for encoded in event.persisted.values():
                operator, queries, flows = _decode(encoded)
                self._running[operator.name] = Running(operator, list(queries), flows=flows)
            return self._renew(now_us)
        return []

    # --- from above ---

    def _called(self, now_us: int, request: object) -> list[Effect]:
        if isinstance(request, Install):
            name = request.operator.name
            if name in self._running:
                raise ValueError(f"operator {name} is installed already")
            self._running[name] = Running(request.operator)
            return [self._persist(name), *self._settle(now_us, name)]
        if not isinstance(request, Want | SetAble | Remove):
            raise TypeError(f"alerts can't {request!r}")
        running = self._running.get(request.operator)
        if running is None:
            raise ValueError(f"operator {request.operator} is not installed at this node")
        if isinstance(request, Remove):
            del self._running[request.operator]  # its consumers miss its answers
            return [Persist(request.operator, None)]
        if isinstance(request, SetAble):
            running.flows = request.able
        elif request.wanted and request.query not in running.queries:
            running.queries.append(request.query)
        elif not request.wanted and request.query in running.queries:
            running.queries.remove(request.query)
        return [self._persist(request.operator), *self._settle(now_us, request.operator)]

    def _persist(self, name: str) -> Effect:
        running = self._running[name]
        return Persist(name, _encode((running.operator, running.queries, running.flows)))

    # --- between nodes ---

    def _received(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        if isinstance(message, Demand):
            return self._demanded(now_us, (sender, message.consumer), message)
        assert isinstance(message, Status)
        running = self._running.get(message.consumer)
        if running is None or (message.producer, sender) not in running.operator.inputs:
            return []
        known = running.answers.get(message.producer)
        if known is not None and known[1] > message.stamp_us:
            return []
        running.answers[message.producer] = (now_us, message.stamp_us, message.able)
        return self._settle(now_us, message.consumer)

    def _demanded(self, now_us: int, consumer: Consumer, message: Demand) -> list[Effect]:
        running = self._running.get(message.producer)
        if running is None:
            return []  # no answer is the answer: not able
        if running.watchers.get(consumer, (0, _NEVER_US))[1] > message.stamp_us:
            return []
        running.watchers[consumer] = (now_us, message.stamp_us)
        if message.wanted:
            running.leases[consumer] = now_us + self._lease_us
        else:
            running.leases.pop(consumer, None)
        effects = self._settle(now_us, message.producer)
        status = Status(message.producer, message.consumer, running.able, now_us)
        return [*effects, Send(consumer[0], status)]

    def _settle(self, now_us: int, name: str) -> list[Effect]:
        """Tell up and down the plan what has changed at this operator, and only that."""
        running = self._running[name]
        effects: list[Effect] = []
        if running.active != running.was_active:
            running.was_active = running.active
            effects.append(Deliver(Resumed(name) if running.active else Suspended(name)))
        for producer, address in running.operator.inputs:
            wanted = running.wants(producer)
            if wanted != running.was_wanted.get(producer, False):
                running.was_wanted[producer] = wanted
                effects.append(Send(address, Demand(producer, name, wanted, now_us)))
        if running.able != running.was_able:
            running.was_able = running.able
            for address, consumer in running.watchers:
                effects.append(Send(address, Status(name, consumer, running.able, now_us)))
        return effects

    # --- leases ---

    def _renew(self, now_us: int) -> list[Effect]:
        effects: list[Effect] = [SetTimer("renew", self._lease_us // 3)]
        for name, running in self._running.items():
            self._expire(now_us, running)
            effects += self._settle(now_us, name)
            if not running.active and not running.watchers:
                # Nobody looks: rest entirely, and start afresh when somebody does.
                running.answers.clear()
                continue
            for producer, address in running.operator.inputs:
                running.answers.setdefault(producer, (now_us, _NEVER_US, True))
                wanted = running.wants(producer)
                effects.append(Send(address, Demand(producer, name, wanted, now_us)))
        return effects

    def _expire(self, now_us: int, running: Running) -> None:
        """What a consumer or a producer has not said again for a lease no longer holds."""
        running.leases = {c: end for c, end in running.leases.items() if end > now_us}
        since_us = now_us - self._lease_us
        running.watchers = {c: w for c, w in running.watchers.items() if w[0] > since_us}
        for producer, (heard_us, stamp_us, able) in running.answers.items():
            if able and heard_us <= since_us:
                running.answers[producer] = (heard_us, stamp_us, False)
