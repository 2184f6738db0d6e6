"""What a coordinator decides: which way a query goes, and which queries move.

- *Routing* (COSMOS 3.3.6): from the root down, at each level to the child where the query adds
  least to the weighted edge cut, among those with a provider that has room for it.
- *Rounds* (3.3.7): the root begins one now and then. It looks after the load bound, then every
  coordinator from the root down re-balances and refines among its children. Who moves is told to
  its owner at once; what was moved just now rests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.overlay.coordinators.tree import CoordinatorTree
from thalweg.overlay.distribution.entries import Rate, Running
from thalweg.overlay.distribution.messages import NOT_YET, Found, Move, Round, Seek
from thalweg.overlay.distribution.picture import ROUNDING, Picture, Subtree, between
from thalweg.overlay.distribution.reporting import Reporter
from thalweg.overlay.distribution.shifting import adapt, excess
from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import Address, Effect, Send
from thalweg.placement.arrays import floats

_FRESH_US = 300_000_000  # so long after its rest, a query has forgotten its moves


@dataclass(frozen=True, slots=True)
class Sent:
    """A query on its way, which no report speaks of yet."""

    child: Address
    weight: float
    until_us: int


class Coordinator:
    def __init__(
        self, tree: CoordinatorTree, reporter: Reporter, slack: float, calm_us: int
    ) -> None:
        self._tree = tree
        self._reporter = reporter
        self._slack = slack
        self._calm_us = calm_us  # so long a move or a new query takes to be seen in reports
        self._own: Address = ""
        self._generator = Generator(0)
        self._rates: dict[int, Rate] = {}
        self._sent: dict[tuple[int, str], Sent] = {}  # by level and name
        self._rests_until_us: dict[str, int] = {}
        self._tired: dict[str, tuple[int, int]] = {}  # how often moved, and until when it rests
        self._pictures: dict[int, tuple[object, Picture]] = {}
        self._summed_up: tuple[int, Subtree] | None = None  # as of a version of the ledger
        self._adapted: dict[int, object] = {}  # by level: what was adapted to

    def begin(self, own: Address, generator: Generator) -> None:
        self._own, self._generator = own, generator

    # --- routing ---

    def route(self, now_us: int, seek: Seek) -> list[Effect]:
        place = self._tree.place
        level, fair = seek.level, seek.fair
        if level == NOT_YET:
            if place.parent is not None:
                return self._upwards(seek, place.parent)
            fair = self._fair(arriving=0.0 if seek.epoch is not None else seek.weight)
        allowed = (1 + self._slack) * fair
        level = min(level, place.height - 1)
        while level >= 0:
            child = self._choose(now_us, level, seek, allowed)
            if child is None:
                return []
            until_us = now_us + self._calm_us
            self._sent[level, seek.query.name] = Sent(child, seek.weight, until_us)
            if level == 0:
                return self._answer(seek, child)
            level -= 1
            if child != self._own:
                return [Send(child, _at(seek, level, fair))]
        return self._answer(seek, self._own)

    def _upwards(self, seek: Seek, parent: Address) -> list[Effect]:
        if seek.hops <= 0:
            return []
        return [Send(parent, _at(seek, NOT_YET, seek.fair))]

    def _answer(self, seek: Seek, provider: Address) -> list[Effect]:
        if seek.epoch is None:
            return [Send(seek.asker, Found(seek.token, provider))]
        if provider == seek.asker:
            return []
        return [Send(seek.asker, Move(seek.query.name, seek.epoch, provider))]

    def _choose(self, now_us: int, level: int, seek: Seek, allowed: float) -> Address | None:
        """None: nobody can take it; or nobody has room for one that could as well stay."""
        picture = self._picture(level)
        room = floats(
            child.room(allowed) - self._on_its_way(now_us, level, child)
            for child in picture.children
        )
        least = seek.weight * (1 - ROUNDING)
        lacking = room < least if seek.must_fit else np.isneginf(room)
        if lacking.all():
            return None
        return picture.children[picture.cheapest(seek.query, seek.weight, room)].address

    def _on_its_way(self, now_us: int, level: int, child: Subtree) -> float:
        found = 0.0
        for (at, name), sent in list(self._sent.items()):
            if sent.until_us <= now_us:
                del self._sent[at, name]
            elif at == level and sent.child == child.address and name not in child.running:
                found += sent.weight
        return found

    # --- rounds ---

    def begin_round(self, now_us: int) -> list[Effect]:
        """At the root: what is too much goes first, and only then is the rest looked at."""
        fair = self._fair()
        shifts = excess(self._whole(), (1 + self._slack) * fair, self._resting(now_us))
        effects: list[Effect] = []
        for shift in shifts:
            running = shift.running
            self._rest(now_us, running)
            if shift.to is not None:
                effects.append(_move(running, shift.to))
            else:
                effects += self.route(now_us, _order(running, self._top, fair, must_fit=True))
        entries = self._reporter.ledger.entries.values()
        rates = tuple(e for e in entries if isinstance(e, Rate))
        self._rates = {r.substream: r for r in rates}
        if not shifts:
            effects += self.go_on(now_us, Round(self._top, fair, rates))
        return effects

    def go_on(self, now_us: int, message: Round) -> list[Effect]:
        """A round that comes from above: this node's clusters, and those of its children."""
        self._rates = {r.substream: r for r in message.rates}
        effects: list[Effect] = []
        for level in range(min(message.level, self._top), -1, -1):
            effects += self._adapt(now_us, level, message.fair)
            if level > 0:
                below = Round(level - 1, message.fair, message.rates)
                effects += [Send(m, below) for m in self._tree.place.led[level].others]
        return effects

    def _adapt(self, now_us: int, level: int, fair: float) -> list[Effect]:
        picture = self._picture(level)
        known = (self._reporter.ledger.version, fair, tuple(self._rates.values()))
        if self._adapted.get(level) == known:
            return []
        resting = {**self._resting(now_us), **self._weary(now_us)}
        if not resting:  # else there may be more to do, though nothing changes
            self._adapted[level] = known
        allowed = (1 + self._slack) * fair
        effects: list[Effect] = []
        for running, to in adapt(picture, allowed, resting, self._generator.bits()):
            self._rest(now_us, running)
            self._tire(now_us, running.query.name)
            child = picture.children[to].address
            if level == 0:
                effects.append(_move(running, child))
            elif child == self._own:
                effects += self.route(now_us, _order(running, level - 1, fair))
            else:
                effects.append(Send(child, _order(running, level - 1, fair)))
        return effects

    def _resting(self, now_us: int) -> dict[str, int]:
        """What was told to move just now: reports are still to show it."""
        for name in [n for n, until_us in self._rests_until_us.items() if until_us <= now_us]:
            del self._rests_until_us[name]
        return self._rests_until_us

    def _weary(self, now_us: int) -> dict[str, int]:
        """What was moved to make things better, and not for the bound: each time for longer.

        Two levels may disagree about a query for ever. The bound is kept meanwhile.
        """
        since_us = now_us - _FRESH_US
        for name in [n for n, (_, until_us) in self._tired.items() if until_us <= since_us]:
            del self._tired[name]
        return {name: until for name, (_, until) in self._tired.items() if until > now_us}

    def _tire(self, now_us: int, name: str) -> None:
        times = self._tired.get(name, (0, 0))[0] + 1
        self._tired[name] = (times, now_us + (self._calm_us << min(2 * times, 10)))

    def _rest(self, now_us: int, running: Running) -> None:
        self._rests_until_us[running.query.name] = now_us + 2 * self._calm_us

    # --- what is known ---

    @property
    def _top(self) -> int:
        return self._tree.place.height - 1

    def _fair(self, arriving: float = 0.0) -> float:
        """Load for each unit of capability, if all had their share."""
        whole = self._whole()
        capability = whole.total_capability
        return (whole.total_load + arriving) / capability if capability > 0 else 0.0

    def _whole(self) -> Subtree:
        """All that is at and below this node, each query once."""
        version = self._reporter.ledger.version
        if self._summed_up is None or self._summed_up[0] != version:
            whole = Subtree(self._own)
            whole.add(self._reporter.ledger.entries.values())
            self._summed_up = (version, whole)
        return self._summed_up[1]

    def _picture(self, level: int) -> Picture:
        cluster = self._tree.place.led[level]
        members = sorted(cluster.members)
        latency_ms = between(members, lambda a, b: self._tree.distance_us(level, a, b))
        key = (self._reporter.ledger.version, tuple(members), latency_ms.tobytes())
        known = self._pictures.get(level)
        if known is None or known[0] != key:
            children = [self._subtree(level, member) for member in members]
            known = self._pictures[level] = (key, Picture(children, latency_ms, self._rates))
        return Picture(known[1].children, latency_ms, self._rates)

    def _subtree(self, level: int, member: Address) -> Subtree:
        """This node itself is a member of all its clusters: below it are those of lower levels."""
        found = Subtree(member)
        if member != self._own:
            found.add(self._reporter.below(member))
            return found
        found.add(self._reporter.own.values())
        for cluster in self._tree.place.led[:level]:
            for other in cluster.others:
                found.add(self._reporter.below(other))
        return found


def _at(seek: Seek, level: int, fair: float) -> Seek:
    """The same question, one step further."""
    return Seek(
        seek.asker,
        seek.token,
        seek.query,
        seek.weight,
        seek.epoch,
        seek.must_fit,
        level,
        fair,
        seek.hops - 1,
    )


def _order(running: Running, level: int, fair: float, *, must_fit: bool = False) -> Seek:
    """To find a provider for one that moves, and to tell its owner.

    What moves because its child has too much may find its room only when others have moved away.
    """
    query, weight, owner = running.query, running.weight, running.owner
    return Seek(owner, 0, query, weight, running.epoch, must_fit, level, fair, level + 1)


def _move(running: Running, to: Address) -> Effect:
    return Send(running.owner, Move(running.query.name, running.epoch, to))
