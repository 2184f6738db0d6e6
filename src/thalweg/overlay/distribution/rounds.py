"""Rounds of redistribution (COSMOS 3.3.7): which queries a coordinator tells to move, and when.

The root begins a round now and then. It looks after the load bound, then every coordinator from the
root down re-balances and refines among its children. Who moves is told to its owner at once; what
was moved just now rests.
"""

from __future__ import annotations

from thalweg.overlay.distribution.entries import Running
from thalweg.overlay.distribution.messages import Move, Round, Seek
from thalweg.overlay.distribution.resting import Rests
from thalweg.overlay.distribution.routing import Routing
from thalweg.overlay.distribution.shifting import adapt, excess
from thalweg.overlay.distribution.surveying import Survey
from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import Address, Effect, Send


class Rounds:
    def __init__(self, survey: Survey, routing: Routing, slack: float, calm_us: int) -> None:
        self._survey = survey
        self._routing = routing
        self._slack = slack
        self._rests = Rests(calm_us)
        self._generator = Generator(0)
        self._adapted: dict[int, object] = {}  # by level: what was adapted to

    def seed(self, generator: Generator) -> None:
        self._generator = generator

    def begin(self, now_us: int) -> list[Effect]:
        """At the root: what is too much goes first, and only then is the rest looked at."""
        survey = self._survey
        fair, top = survey.fair(), survey.top
        shifts = excess(survey.whole(), (1 + self._slack) * fair, self._rests.moving(now_us))
        effects: list[Effect] = []
        for shift in shifts:
            running = shift.running
            self._rests.move(now_us, running.query.name)
            if shift.to is not None:
                effects.append(_move(running, shift.to))
            else:
                order = _order(running, top, fair, must_fit=True)
                effects += self._routing.route(now_us, order)
        rates = survey.reported_rates()
        survey.learn(rates)
        if not shifts:
            effects += self.go_on(now_us, Round(top, fair, rates))
        return effects

    def go_on(self, now_us: int, message: Round) -> list[Effect]:
        """A round that comes from above: this node's clusters, and those of its children."""
        self._survey.learn(message.rates)
        effects: list[Effect] = []
        for level in range(min(message.level, self._survey.top), -1, -1):
            effects += self._adapt(now_us, level, message.fair)
            if level > 0:
                below = Round(level - 1, message.fair, message.rates)
                effects += [Send(m, below) for m in self._survey.others(level)]
        return effects

    def _adapt(self, now_us: int, level: int, fair: float) -> list[Effect]:
        survey = self._survey
        picture = survey.picture(level)
        known = (survey.version, fair, tuple(survey.rates.values()))
        if self._adapted.get(level) == known:
            return []
        resting = self._rests.all(now_us)
        if not resting:  # else there may be more to do, though nothing changes
            self._adapted[level] = known
        allowed = (1 + self._slack) * fair
        effects: list[Effect] = []
        for running, to in adapt(picture, allowed, resting, self._generator.bits()):
            self._rests.move(now_us, running.query.name)
            self._rests.tire(now_us, running.query.name)
            child = picture.children[to].address
            if level == 0:
                effects.append(_move(running, child))
            elif child == survey.own:
                effects += self._routing.route(now_us, _order(running, level - 1, fair))
            else:
                effects.append(Send(child, _order(running, level - 1, fair)))
        return effects


def _order(running: Running, level: int, fair: float, *, must_fit: bool = False) -> Seek:
    """To find a provider for one that moves, and to tell its owner.

    What moves because its child has too much may find its room only when others have moved away.
    """
    query, weight, owner = running.query, running.weight, running.owner
    return Seek(owner, 0, query, weight, running.epoch, must_fit, level, fair, level + 1)


def _move(running: Running, to: Address) -> Effect:
    return Send(running.owner, Move(running.query.name, running.epoch, to))
