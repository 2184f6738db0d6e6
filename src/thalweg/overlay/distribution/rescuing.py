"""Orphans, queries that nobody reports any more: they are handed to their proxies, or rescued.

Orphans go up to the root, and from it to their proxies, if these are there; where a proxy is gone
too, the root grants the query itself.
"""

from __future__ import annotations

from thalweg.overlay.distribution import messages as say
from thalweg.overlay.distribution.reporting import Orphan
from thalweg.overlay.distribution.state import State
from thalweg.overlay.protocol import Address, Effect, Send


class OrphanRescue:
    def __init__(self, state: State) -> None:
        self._state = state

    def look_after(self, now_us: int) -> list[Effect]:
        state = self._state
        parent, settings = state.tree.place.parent, state.settings
        effects: list[Effect] = []
        for orphan in state.reporter.orphans.values():
            age_us, last = now_us - orphan.since_us, orphan.last
            if age_us < settings.lease_us:
                continue  # most of them have only moved
            query = last.query
            to = query.proxy if parent is None else parent
            effects.append(Send(to, say.Entrust(query, last.epoch, orphan.custody)))
            proxy_is_gone = parent is None and state.failures.is_down(query.proxy)
            if proxy_is_gone and age_us > settings.orphaned_us:
                effects += state.granter.start(
                    query, last.weight, last.epoch, state.tree.root, is_rescue=True
                )
        return effects

    def entrusted(self, now_us: int, sender: Address, message: say.Entrust) -> list[Effect]:
        """A child hands one up."""
        self._state.reporter.adopt(now_us, message.query, message.epoch, sender)
        return [Send(sender, say.Entrusted(message.query.name, message.custody))]

    def leave(self) -> list[Effect]:
        """Orphans in its custody go to who would hear of them next: nobody else has them."""
        place, own = self._state.tree.place, self._state.own
        heirs = [place.parent] if place.parent is not None else place.near(own)[:1]
        return [
            Send(heir, say.Entrust(orphan.last.query, orphan.last.epoch, orphan.custody))
            for heir in heirs
            for orphan in self._state.reporter.orphans.values()
        ]

    def granted(self, now_us: int, name: str) -> None:
        """It will be reported by whoever took it; if not, it is an orphan anew."""
        orphans = self._state.reporter.orphans
        orphan = orphans.get(f"q {name}")
        if orphan is not None:
            orphans[f"q {name}"] = Orphan(orphan.last, now_us, orphan.custody)

    def forget(self, name: str) -> None:
        self._state.reporter.orphans.pop(f"q {name}", None)
