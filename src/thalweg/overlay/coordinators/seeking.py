"""A node without a parent is a root, and every root looks for others (COSMOS 3.3.3, rule 1)."""

from __future__ import annotations

from thalweg.overlay.coordinators import messages as say
from thalweg.overlay.coordinators.search import Search, yields
from thalweg.overlay.coordinators.tree_state import TreeState
from thalweg.overlay.protocol import Address, Effect, Send, SetTimer


class Seeking(TreeState):
    def _look_for_others(self, now_us: int) -> list[Effect]:
        if not self.place.is_root:
            return []
        if self._search is not None:
            if now_us - self._search.started_us < self.settings.lease_us:
                return []
            self._search = None
        if self._hints:
            contact = self._hints.pop(0)
        else:
            others = [a for a in self._members.up() if a != self._own]
            if not others:
                return []
            contact = self._generator.choice(others)
        if contact == self._own:
            return []
        self._search = Search(contact, now_us)
        return [self._ask(contact, None)]

    def _ask(self, whom: Address, level: int | None) -> Effect:
        assert self._search is not None
        self._search.asked = whom
        return Send(whom, say.Ask(level, self.place.height))

    def _asked(self, now_us: int, sender: Address, message: say.Ask) -> list[Effect]:
        place, level = self.place, message.level
        effects: list[Effect] = []
        if level is None:
            top = place.height - 1
            members = tuple(sorted(place.led[top].members)) if place.is_root and place.led else ()
            effects.append(Send(sender, say.Below(top, members, self.root, place.height)))
            loses = place.is_root and yields(place.height, self._own, message.height, sender)
            if loses and (self._search is None or self._search.asked != sender):
                self._search = Search(sender, now_us)
                effects.append(self._ask(sender, None))
        elif level < place.height:
            members = tuple(sorted(place.led[level].members))
            effects.append(Send(sender, say.Below(level, members, self.root, place.height)))
        else:
            effects.append(Send(sender, say.NotYours(level)))
        return effects

    def _told_below(self, now_us: int, sender: Address, answer: say.Below) -> list[Effect]:
        search, height = self._search, self.place.height
        if search is None or search.asked != sender or not self.place.is_root:
            return []
        if answer.root == self._own:
            self._search = None  # one of this node's own tree
            return []
        if answer.root != sender and search.level < 0:
            search.seen.append(sender)
            if answer.root in search.seen:
                self._search = None
                return []
            return [self._ask(answer.root, None)]
        if search.level < 0 and not yields(height, self._own, answer.height, sender):
            self._search = None  # the other root joins this tree: it has been told by Ask
            return []
        if answer.level <= height:
            # The sender leads the level at which this node belongs, or is as high and will.
            return [Send(sender, say.Join(height))]
        to_ping = search.choose_among(answer, self._own)
        effects: list[Effect] = [Send(m, say.Ping(now_us)) for m in to_ping]
        return [*effects, SetTimer("descend", self.settings.heartbeat_us)]

    def _descend(self, now_us: int) -> list[Effect]:
        """All children have answered, or time is up: on to the nearest."""
        search = self._search
        if search is None or not search.candidates or not self.place.is_root:
            return []
        nearest, below = search.nearest(), search.level - 1
        search.candidates = {}
        if nearest is None:
            self._search = None
            return []
        if below == self.place.height:
            search.asked = nearest
            return [Send(nearest, say.Join(below))]
        return [self._ask(nearest, below)]

    def _joined(self, now_us: int, sender: Address, level: int) -> list[Effect]:
        place = self.place
        if level == place.height and place.is_root and self._search_is_idle():
            self._lead(now_us, [], None)  # two roots of one height: a new one above both
        if level >= place.height or sender == place.parent:
            return [Send(sender, say.NotYours(level))]
        place.led[level].add(now_us, sender)
        return self._heartbeats(level)

    def _search_is_idle(self) -> bool:
        """Not about to become somebody's child itself."""
        return self._search is None or self._search.level < 0
