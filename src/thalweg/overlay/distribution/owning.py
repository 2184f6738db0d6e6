"""A node as a provider: it takes queries, runs them under leases, and hands them over."""

from __future__ import annotations

from thalweg.overlay.distribution import messages as say
from thalweg.overlay.distribution.entries import Epoch, Rate
from thalweg.overlay.distribution.state import State
from thalweg.overlay.protocol import Address, Deliver, Effect, Persist, Send


class Owner:
    def __init__(self, state: State) -> None:
        self._state = state
        self._measurements = 0

    def granted(self, now_us: int, sender: Address, grant: say.Grant) -> list[Effect]:
        state = self._state
        answer, effects, is_new = state.holdings.take(grant)
        if is_new:
            state.tell(now_us, state.holdings.owned[grant.query.name].entry(state.own))
            effects.append(Deliver(say.Started(grant.query, grant.epoch)))
        return [*effects, Send(sender, answer)]

    def resume(self, now_us: int) -> list[Effect]:
        """After a start: all that it ran before."""
        effects: list[Effect] = []
        for owned in self._state.holdings.owned.values():
            self._state.tell(now_us, owned.entry(self._state.own))
            effects.append(Deliver(say.Started(owned.query, owned.epoch)))
        return effects

    def leased(self, sender: Address, message: say.Leased) -> list[Effect]:
        holdings = self._state.holdings
        holdings.leased(message, self._state.granter.jobs)
        unknown = [holdings.owned[n] for n in message.unknown if n in holdings.owned]
        return [Send(sender, say.Entrust(owned.query, owned.epoch)) for owned in unknown]

    def measured(self, now_us: int, message: say.Measured) -> list[Effect]:
        """COSMOS 3.3.8: only what changed is told on; the ledger sees to that."""
        state = self._state
        for name, weight in message.loads:
            owned = state.holdings.owned.get(name)
            if owned is not None:  # it may have moved since it was measured
                owned.weight = weight
                state.tell(now_us, owned.entry(state.own))
        self._measurements += 1
        for substream, bps in message.rates_bps:
            state.tell(now_us, Rate(substream, state.own, self._measurements, bps))
        return []

    def set_capability(self, now_us: int, capability: float) -> list[Effect]:
        self._state.capability = capability
        self._state.tell_capability(now_us)
        return self._drained()

    def move(self, order: say.Move) -> list[Effect]:
        """The query stops here while it is handed over, so that its state can be sent along."""
        state = self._state
        owned = state.holdings.owned.get(order.name)
        if owned is None or owned.epoch != order.epoch or order.to == state.own:
            return []  # an old order
        if order.name in state.granter.jobs:
            return []
        owned.leased_until_us = 0
        return state.granter.start(
            owned.query, owned.weight, owned.epoch, state.tree.root, to=order.to
        )

    def superseded(self, now_us: int, name: str, epoch: Epoch | None) -> list[Effect]:
        """Somebody has it in a higher epoch, or (None) nobody should have it."""
        if not self._state.holdings.is_superseded(name, epoch):
            return []
        return self._stop(now_us, name, is_withdrawn=epoch is None)

    def _stop(self, now_us: int, name: str, *, is_withdrawn: bool) -> list[Effect]:
        state = self._state
        job = state.granter.jobs.get(name)
        effects: list[Effect] = []
        if job is not None and job.given_to is not None:
            effects += state.granter.stop(name)
        effects += state.holdings.drop(name, is_withdrawn=is_withdrawn)
        state.reporter.set_own(now_us, f"q {name}", None)
        return [*effects, Deliver(say.Stopped(name)), *self._drained()]

    def _drained(self) -> list[Effect]:
        empty = self._state.capability <= 0 and not self._state.holdings.owned
        return [Deliver(say.Drained())] if empty else []

    def leave(self) -> list[Effect]:
        """A departure without notice: everything goes to the neighbours in the tree."""
        state = self._state
        near = state.tree.place.near(state.own)
        effects: list[Effect] = []
        for number, (name, owned) in enumerate(state.holdings.owned.items() if near else ()):
            epoch = state.granter.next_epoch(name, owned.epoch)
            to = near[number % len(near)]
            effects.append(Send(to, say.Grant(owned.query, epoch, owned.weight)))
            effects.append(Persist(f"owned {name}", None))
        return effects
