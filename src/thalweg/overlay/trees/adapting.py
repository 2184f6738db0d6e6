"""Tokens in rounds, and one transformation for each (COSMOS 4.2.2, Algorithm 4.1; 4.3.2).

The home begins a round; whoever has the token, and whose children hold still, performs the best
transformation that it knows and passes the token on. A transformation is one or two orders to
change the publisher, one after the other; one that is not carried out in time is given up, and what
was done stays: it is a tree at every step.
"""

from __future__ import annotations

from thalweg.overlay.protocol import Address, Effect, Send
from thalweg.overlay.trees import messages as say
from thalweg.overlay.trees.holding import Acknowledge, Action, AskToHold
from thalweg.overlay.trees.reporting import Reporting
from thalweg.overlay.trees.state import Adapting, Place
from thalweg.overlay.trees.stream import Tree
from thalweg.overlay.trees.transformations.choice import best


class Adaptation(Reporting):
    def _begin_round(self, now_us: int, place: Place) -> list[Effect]:
        place.round_us = now_us
        return self._got_token(now_us, place.tree, now_us)

    def _got_token(self, now_us: int, tree: Tree, round_: int) -> list[Effect]:
        place = self.places.get(tree)
        children = tuple(place.children) if place is not None else ()
        return self._perform(now_us, self.holding.token(now_us, tree, round_, children))

    def _perform(self, now_us: int, actions: list[Action]) -> list[Effect]:
        effects: list[Effect] = []
        for action in actions:
            if isinstance(action, AskToHold):
                hold = say.Hold(action.tree, action.round, self.holding.number)
                effects.append(Send(action.to, hold))
            elif isinstance(action, Acknowledge):
                effects += self._acknowledge(action)
            else:
                effects += self._adapt(now_us, action.tree, action.round, action.children)
        return effects

    def _acknowledge(self, action: Acknowledge) -> list[Effect]:
        place = self.places.get(action.tree)
        if place is None:
            return [Send(action.to, say.Ack(action.tree, action.round, 0, None, ()))]
        self._fresh(place)  # what other trees changed comes along
        version, report, kids = place.version, place.report, place.kids
        return [Send(action.to, say.Ack(action.tree, action.round, version, report, kids))]

    def _adapt(
        self, now_us: int, tree: Tree, round_: int, children: tuple[Address, ...]
    ) -> list[Effect]:
        place = self.places.get(tree)
        if place is None:
            return self._perform(now_us, self.holding.adapted(now_us, tree))
        place.adapting = Adapting(round_, 0, [], now_us)
        view, names = self._view(place, children)
        if len(names) > 1 and self._is_sure(now_us, place):
            least = self.times.least_gain * view.on_links + 1e-12  # above rounding
            choice = best(view, least)
            if choice is not None:
                self.done[choice.transformation] = self.done.get(choice.transformation, 0) + 1
                place.adapting.moves = [(names[m.node], names[m.to]) for m in choice.moves]
        return self._next_move(now_us, place)

    def _next_move(self, now_us: int, place: Place) -> list[Effect]:
        adapting = place.adapting
        assert adapting is not None
        if not adapting.moves:
            return self._finish(now_us, place)
        node, to = adapting.moves.pop(0)
        adapting.order, adapting.since_us = self._serial(), now_us
        return [Send(node, say.Rehang(place.tree, adapting.order, to))]

    def _heard_rehung(self, now_us: int, message: say.Rehung) -> list[Effect]:
        place = self.places.get(message.tree)
        adapting = place.adapting if place is not None else None
        if place is None or adapting is None or adapting.order != message.order:
            return []
        return self._next_move(now_us, place) if message.done else self._finish(now_us, place)

    def _finish(self, now_us: int, place: Place) -> list[Effect]:
        adapting, place.adapting = place.adapting, None
        assert adapting is not None
        token = say.Token(place.tree, adapting.round)
        effects: list[Effect] = [Send(child, token) for child in place.children]
        return effects + self._perform(now_us, self.holding.adapted(now_us, place.tree))

    def _look_after_moves(self, now_us: int, place: Place) -> list[Effect]:
        adapting = place.adapting
        if adapting is None or now_us - adapting.since_us < self.times.move_us:
            return []
        return self._finish(now_us, place)
