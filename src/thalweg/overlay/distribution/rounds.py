"""Rounds of redistribution (COSMOS 3.3.7): which queries move, decided from the root down.

The root begins a round now and then. It looks after the load bound first. Then every coordinator
from the root down decides which child each query goes to, and tells its children which ones come
to them and which leave; the lowest ones tell the owners, so that a query moves once in a round,
straight to its new provider. A decision that is lost on its way leaves the query where it is; what
was told to move just now rests.
"""

from __future__ import annotations

import msgspec

from thalweg.overlay.distribution.adapting import Change, Decision, Terms, accepted, adapt, cut
from thalweg.overlay.distribution.entries import Running
from thalweg.overlay.distribution.messages import Move, Round, Seek
from thalweg.overlay.distribution.move_backoff import Rests
from thalweg.overlay.distribution.overload_moves import excess
from thalweg.overlay.distribution.picture import Heading, Picture
from thalweg.overlay.distribution.routing import Routing
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
                told = [_move(running, shift.to)]
            else:
                told = self._routing.route(now_us, _order(running, top, fair))
            if told:
                self._head(now_us, running, shift.to)
            effects += told
        survey.learn(rates := survey.reported_rates())
        return effects + self.go_on(now_us, Round(top, fair, self._cost(), rates))

    def _head(self, now_us: int, running: Running, to: Address | None) -> None:
        """One that must leave its provider, for this one or (None) for whoever has room."""
        name = running.query.name
        for level in range(self._survey.top + 1):
            picture = self._survey.picture(level)
            child = self._routing.sent_to(level, name)
            number = None if to is None else picture.child_of(to)
            if number is not None:
                child = picture.children[number].address
            self._rests.head(now_us, name, level, Heading(running, child))

    def _cost(self) -> float:
        """What a unit of load pays for its share of the cut, as the root sees it."""
        if self._survey.top < 0:
            return 0.0
        picture = self._survey.picture(self._survey.top)
        return cut(picture) / max(self._survey.whole().total_load, 1e-300)

    def go_on(self, now_us: int, message: Round) -> list[Effect]:
        """A round that comes from above: this node's clusters, and those of its children."""
        survey = self._survey
        survey.learn(message.rates)
        terms = Terms((1 + self._slack) * message.fair, message.cost)
        effects: list[Effect] = []
        change = Change(message.coming, message.leaving)
        for level in range(min(message.level, survey.top), -1, -1):
            # Reports are still to show what was told to move just now.
            picture = survey.picture(level).after(self._rests.heading(now_us, level))
            for child in picture.children:
                for name in change.leaving:
                    if name in child.running:
                        away = Heading(child.running[name], None)
                        self._rests.head(now_us, name, level, away)
            decided = self._decided(now_us, level, picture, terms, change)
            if level == 0:
                members = [c.address for c in picture.children]
                return effects + [_move(d.running, members[d.to]) for d in decided]
            below = _below(picture, decided, change)
            for member in survey.others(level):
                coming, leaving = below[member].coming, below[member].leaving
                told = msgspec.structs.replace(
                    message, level=level - 1, coming=coming, leaving=leaving
                )
                effects.append(Send(member, told))
            change = below[survey.own]
        return effects

    def _decided(
        self, now_us: int, level: int, picture: Picture, terms: Terms, change: Change
    ) -> list[Decision]:
        survey, rests = self._survey, self._rests
        known = (survey.version, terms, tuple(survey.rates.values()))
        if change == Change() and self._adapted.get(level) == known:
            return []
        resting = rests.all(now_us)
        if not resting:  # else there may be more to do, though nothing changes
            self._adapted[level] = known
        decided = adapt(picture, terms, resting, self._generator.bits(), change)
        if level == 0:
            decided = accepted(decided, picture, terms.allowed, change.leaving)
        for decision in decided:
            name, child = decision.running.query.name, picture.children[decision.to].address
            rests.head(now_us, name, level, Heading(decision.running, child))
            if decision.at is not None:
                rests.tire(now_us, name)
        return decided


def _below(picture: Picture, decided: list[Decision], change: Change) -> dict[Address, Change]:
    """What it means for each child."""
    coming: dict[int, list[Running]] = {}
    leaving: dict[int, list[str]] = {}
    for decision in decided:
        coming.setdefault(decision.to, []).append(decision.running)
        if decision.at is not None:
            leaving.setdefault(decision.at, []).append(decision.running.query.name)
    found = {}
    for number, child in enumerate(picture.children):
        gone = [name for name in change.leaving if name in child.running]
        leaves = (*gone, *leaving.get(number, ()))
        found[child.address] = Change(tuple(coming.get(number, ())), leaves)
    return found


def _order(running: Running, level: int, fair: float) -> Seek:
    """To find a provider for one that must move, and to tell its owner."""
    query, weight, owner = running.query, running.weight, running.owner
    return Seek(owner, 0, query, weight, running.epoch, level, fair, level + 1)


def _move(running: Running, to: Address) -> Effect:
    return Send(running.owner, Move(running.query.name, running.epoch, to))
