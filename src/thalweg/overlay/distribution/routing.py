"""Which way a query goes (COSMOS 3.3.6).

From the root down, at each level to the child where the query adds least to the weighted edge cut,
among those with a provider that has room for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.overlay.distribution.messages import NOT_YET, Found, Move, Seek
from thalweg.overlay.distribution.picture import ROUNDING, Subtree
from thalweg.overlay.distribution.surveying import Survey
from thalweg.overlay.protocol import Address, Effect, Send
from thalweg.placement.arrays import floats


@dataclass(frozen=True, slots=True)
class Sent:
    """A query on its way, which no report speaks of yet."""

    child: Address
    weight: float
    until_us: int


class Routing:
    def __init__(self, survey: Survey, slack: float, calm_us: int) -> None:
        self._survey = survey
        self._slack = slack
        self._calm_us = calm_us  # so long a new query takes to be seen in reports
        self._sent: dict[tuple[int, str], Sent] = {}  # by level and name

    def route(self, now_us: int, seek: Seek) -> list[Effect]:
        survey = self._survey
        level, fair = seek.level, seek.fair
        if level == NOT_YET:
            if survey.parent is not None:
                return self._upwards(seek, survey.parent)
            fair = survey.fair(arriving=0.0 if seek.epoch is not None else seek.weight)
        allowed = (1 + self._slack) * fair
        level = min(level, survey.top)
        while level >= 0:
            child = self._choose(now_us, level, seek, allowed)
            if child is None:
                return []
            until_us = now_us + self._calm_us
            self._sent[level, seek.query.name] = Sent(child, seek.weight, until_us)
            if level == 0:
                return self._answer(seek, child)
            level -= 1
            if child != survey.own:
                return [Send(child, _at(seek, level, fair, survey.own))]
        return self._answer(seek, survey.own)

    def sent_to(self, level: int, name: str) -> Address | None:
        """The child that a query was sent to just now; None: to none of that cluster."""
        sent = self._sent.get((level, name))
        return None if sent is None else sent.child

    def _upwards(self, seek: Seek, parent: Address) -> list[Effect]:
        if seek.hops <= 0:
            return []
        return [Send(parent, _at(seek, NOT_YET, seek.fair))]

    def _answer(self, seek: Seek, provider: Address) -> list[Effect]:
        if seek.epoch is None:
            return [Send(seek.asker, Found(seek.token, provider, (*seek.by, self._survey.own)))]
        if provider == seek.asker:
            return []
        return [Send(seek.asker, Move(seek.query.name, seek.epoch, provider))]

    def _choose(self, now_us: int, level: int, seek: Seek, allowed: float) -> Address | None:
        """None: nobody can take it; or nobody has room for one that could as well stay."""
        picture = self._survey.picture(level)
        room = floats(
            child.room(allowed) - self._on_its_way(now_us, level, child)
            for child in picture.children
        )
        least = seek.weight * (1 - ROUNDING)
        lacking = np.isneginf(room) if seek.epoch is None else room < least
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


def _at(seek: Seek, level: int, fair: float, *by: Address) -> Seek:
    """The same question, one step further; `by` whom, if it was a choice."""
    return Seek(
        seek.asker,
        seek.token,
        seek.query,
        seek.weight,
        seek.epoch,
        level,
        fair,
        seek.hops - 1,
        (*seek.by, *by),
    )
