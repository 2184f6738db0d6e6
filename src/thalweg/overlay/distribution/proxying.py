"""A node as the proxy of its users: it takes their queries, and sees to their owners."""

from __future__ import annotations

from thalweg.overlay.distribution import messages as say
from thalweg.overlay.distribution.entries import Query
from thalweg.overlay.distribution.proxy_leases import Guard
from thalweg.overlay.distribution.state import State
from thalweg.overlay.protocol import Address, Deliver, Effect, Send


class Proxy:
    def __init__(self, state: State) -> None:
        self._state = state

    def submit(self, now_us: int, new: say.Submit) -> list[Effect]:
        """The name is new in all the network: this node, its present life, and a title."""
        own, guards = self._state.own, self._state.guards
        name = f"{new.title}@{own}.{self._state.life:x}"
        if name in guards.kept or name in guards.withdrawn:
            return _rejected(f"a query of {own} is called {new.title} already")
        query = Query(
            name, new.text, own, new.substreams, new.result_bps, new.weight, new.state_bytes
        )
        effects = guards.keep(now_us, query, None)
        effects.append(Deliver(say.Accepted(new.title, name)))
        return effects + self._grant_anew(guards.kept[name])

    def withdraw(self, name: str) -> list[Effect]:
        """Nothing but a refusal where no user here has it."""
        guards = self._state.guards
        if name not in guards.kept:
            kept = f"there are {', '.join(guards.kept)}" if guards.kept else "there is none"
            return _rejected(f"no user of {self._state.own} has a query {name}; {kept}")
        effects = [*guards.withdraw(name), *self._state.granter.stop(name)]
        return [*effects, Deliver(say.Withdrawn(name))]

    def look_after(self, now_us: int) -> list[Effect]:
        """Queries whose owners are silent get new ones."""
        silent = self._state.guards.silent(now_us, self._state.settings.silent_us)
        return [effect for guard in silent for effect in self._grant_anew(guard)]

    def _grant_anew(self, guard: Guard) -> list[Effect]:
        query, state = guard.query, self._state
        return state.granter.start(query, query.weight, guard.epoch, state.tree.root)

    def renewed(self, now_us: int, sender: Address, message: say.Renew) -> list[Effect]:
        guards, granter = self._state.guards, self._state.granter
        answers, effects = guards.renew(now_us, message)
        for name, epoch in message.claims:
            guard, job = guards.kept.get(name), granter.jobs.get(name)
            if guard is not None and guard.epoch == epoch:
                effects += self.settled(name, sender)
            # It was not lost after all, or was given away by somebody else.
            if job is not None and guard is not None and guard.epoch == epoch:
                undecided = job.epoch is None or job.epoch <= epoch
                if job.given_to is None and undecided:
                    effects += granter.stop(name)
        return [*effects, *(Send(sender, a) for a in answers)]

    def settled(self, name: str, owner: Address, by: tuple[Address, ...] = ()) -> list[Effect]:
        """Somebody has it in the highest epoch that is known."""
        guard = self._state.guards.kept.get(name)
        if guard is None or guard.owner == owner:
            return []
        guard.owner, guard.by = owner, by
        return [Deliver(say.Settled(name, owner, by))]

    def entrusted(self, now_us: int, sender: Address, message: say.Entrust) -> list[Effect]:
        """One of its own that it had forgotten; unless it was withdrawn."""
        query, guards = message.query, self._state.guards
        if query.name in guards.withdrawn:
            return [Send(sender, say.Superseded(query.name, None))]
        effects = guards.keep(now_us, query, message.epoch)
        return [*effects, Send(sender, say.Entrusted(query.name, message.custody))]


def _rejected(why: str) -> list[Effect]:
    return [Deliver(say.Rejected(why))]
