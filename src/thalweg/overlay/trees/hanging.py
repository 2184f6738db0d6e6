"""Who hangs under whom: joining, re-hanging, orphans, circles. The source leaves all this out.

A node takes another as its child only if it is sure of its own way to the home and does not see the
other on it. What it sees may be old, so circles can form. They are found in two ways: a beat tells
the path, and who sees itself on its parent's path lets go; and the home's stamp, which every beat
passes on, does not move in a circle. An orphan asks its grandparent first, then further up to the
home; all below it stay with it.
"""

from __future__ import annotations

from thalweg.overlay.protocol import Address, Effect, Send, Tell
from thalweg.overlay.trees import messages as say
from thalweg.overlay.trees.row_messages import Follow
from thalweg.overlay.trees.state import Child, Joining, Place, TreesState
from thalweg.overlay.trees.stream import Tree


class Hanging(TreesState):
    # --- as a child ---

    def _look_after_parent(self, now_us: int, place: Place) -> list[Effect]:
        times = self.times
        effects: list[Effect] = []
        joining = place.joining
        if joining is not None:
            patience_us = times.join_us if joining.path is None else times.move_us
            if now_us - joining.since_us >= patience_us:
                effects += self._give_up(place)
        if place.parent is not None and not self._streams.classes(place.tree):
            return effects + self._let_go(now_us, place)  # nobody here or below wants it any more
        if place.parent is not None:
            silent = now_us - place.parent_heard_us > times.lease_us
            stale = now_us - place.stamp_us > times.stale_us
            if silent or stale or self._members.is_down(place.parent):
                effects += self._let_go(now_us, place)
        if place.parent is None and place.joining is None:
            effects += self._look_for_parent(now_us, place)
        return effects

    def _look_for_parent(self, now_us: int, place: Place) -> list[Effect]:
        if not self._streams.classes(place.tree):
            return []  # wants nothing, and nobody is below
        while place.hints:
            to = place.hints.pop(0)
            if to != self._own and not self._members.is_down(to):
                break
        else:
            to = place.tree.home
        place.joining = Joining(to, self._serial(), now_us)
        return [Send(to, say.Join(place.tree, place.joining.serial))]

    def _let_go(self, now_us: int, place: Place) -> list[Effect]:
        """Of the parent; the grandparent is asked first."""
        assert place.parent is not None
        effects: list[Effect] = [Send(place.parent, say.Bye(place.tree))]
        place.hints = list(reversed(place.path[:-1]))
        place.parent, place.siblings, place.uncles = None, (), ()
        joining = place.joining
        if joining is not None and joining.path is not None:
            return effects + self._hang(now_us, place, joining)
        return [*effects, Tell("subscriptions", Follow(place.tree, None))]

    def _give_up(self, place: Place) -> list[Effect]:
        """The new parent does not serve: stay with the old one."""
        joining, place.joining = place.joining, None
        assert joining is not None
        effects: list[Effect] = [Send(joining.to, say.Bye(place.tree))]
        if joining.path is not None:
            effects.append(Tell("subscriptions", Follow(place.tree, place.parent)))
        if joining.order is not None:
            effects.append(Send(joining.order[0], say.Rehung(place.tree, joining.order[1], False)))
        return effects

    def _hang(self, now_us: int, place: Place, joining: Joining) -> list[Effect]:
        """From this instant on under the new parent."""
        assert joining.path is not None
        effects: list[Effect] = []
        if place.parent is not None and place.parent != joining.to:
            effects.append(Send(place.parent, say.Bye(place.tree)))
        place.parent, place.parent_heard_us = joining.to, now_us
        place.path, place.joining, place.hints = (*joining.path, joining.to), None, []
        effects.append(Tell("subscriptions", Follow(place.tree, joining.to)))
        if joining.order is not None:
            effects.append(Send(joining.order[0], say.Rehung(place.tree, joining.order[1], True)))
        return effects + self._beats(place)  # those below learn their new path at once

    def _stands(self, now_us: int, tree: Tree, publisher: Address) -> list[Effect]:
        place = self.places.get(tree)
        joining = place.joining if place is not None else None
        if place is None or joining is None or joining.path is None or joining.to != publisher:
            return []
        return self._hang(now_us, place, joining)

    def _heard_beat(self, now_us: int, sender: Address, beat: say.Beat) -> list[Effect]:
        place = self.places.get(beat.tree)
        if place is None or self._is_home(beat.tree):
            return [Send(sender, say.Bye(beat.tree))]
        joining = place.joining
        if joining is not None and sender == joining.to:
            return self._heard_new_parent(now_us, place, joining, beat)
        if sender != place.parent:
            return [Send(sender, say.Bye(beat.tree))]
        if self._own in beat.path:
            return self._let_go(now_us, place)  # a circle
        place.parent_heard_us = now_us
        moved = place.path != (*beat.path, sender)
        place.path, place.siblings, place.uncles = (*beat.path, sender), beat.siblings, beat.uncles
        if beat.stamp > place.stamp:
            place.stamp, place.stamp_us = beat.stamp, now_us
        answer = self._here(place, sender, beat.known)
        return [answer, *(self._beats(place) if moved else [])]

    def _heard_new_parent(
        self, now_us: int, place: Place, joining: Joining, beat: say.Beat
    ) -> list[Effect]:
        if self._own in beat.path:
            return self._give_up(place)
        first = joining.path is None
        joining.path = beat.path
        if beat.stamp > place.stamp:
            place.stamp, place.stamp_us = beat.stamp, now_us
        effects: list[Effect] = [self._here(place, joining.to, beat.known)]
        if place.parent is None:
            return effects + self._hang(now_us, place, joining)
        if first:
            joining.since_us = now_us
            effects.append(Tell("subscriptions", Follow(place.tree, joining.to)))
        return effects

    def _here(self, place: Place, to: Address, known: int) -> Effect:
        if known == place.version:
            return Send(to, say.Here(place.tree, place.version, None, ()))
        return Send(to, say.Here(place.tree, place.version, place.report, place.kids))

    def _told_to_rehang(self, now_us: int, sender: Address, order: say.Rehang) -> list[Effect]:
        place = self.places.get(order.tree)
        refusal = Send(sender, say.Rehung(order.tree, order.order, False))
        if place is None or place.parent is None or sender not in place.path[-2:]:
            return [refusal]
        if order.to == place.parent:
            return [Send(sender, say.Rehung(order.tree, order.order, True))]
        # Who has a token ignores such requests, to avoid contradictions (COSMOS 4.2.2).
        if place.joining is not None or self.holding.is_busy(order.tree) or order.to == self._own:
            return [refusal]
        place.joining = Joining(order.to, self._serial(), now_us, (sender, order.order))
        return [Send(order.to, say.Join(order.tree, place.joining.serial))]

    def _prefers(self, now_us: int, tree: Tree, to: Address) -> list[Effect]:
        """Who plans trees wants this node elsewhere: as an order, from nobody."""
        place = self.places.get(tree)
        if place is None or place.joining is not None or self.holding.is_busy(tree):
            return []
        if to in (place.parent, self._own) or self._is_home(tree) or self._members.is_down(to):
            return []
        place.joining = Joining(to, self._serial(), now_us)
        return [Send(to, say.Join(tree, place.joining.serial))]

    def _refused(self, sender: Address, message: say.Refuse) -> list[Effect]:
        place = self.places.get(message.tree)
        joining = place.joining if place is not None else None
        if place is None or joining is None:
            return []
        if joining.to != sender or joining.serial != message.serial or joining.path is not None:
            return []
        return self._give_up(place)

    # --- as a parent ---

    def _asked_to_join(self, now_us: int, sender: Address, message: say.Join) -> list[Effect]:
        tree = message.tree
        place = self.places.get(tree)
        if place is None and self._is_home(tree):
            place = self._place(now_us, tree)
        circle = place is not None and (sender in place.path or sender == place.parent)
        if (
            place is None
            or circle
            or self._is_full(place, sender)
            or not self._is_sure(now_us, place)
        ):
            return [Send(sender, say.Refuse(tree, message.serial))]
        if sender not in place.children:
            place.children[sender] = Child(now_us)
        place.children[sender].heard_us = now_us
        return [self._beat(place, sender)]

    def _is_full(self, place: Place, sender: Address) -> bool:
        if self._most_children is None or self._is_home(place.tree) or sender in place.children:
            return False
        return len(place.children) >= self._most_children

    def _heard_here(self, now_us: int, sender: Address, message: say.Here | say.Ack) -> None:
        place = self.places.get(message.tree)
        child = place.children.get(sender) if place is not None else None
        if child is None:
            return
        child.heard_us = now_us
        if message.report is not None:
            child.version, child.report = message.version, message.report
            child.kids = dict(message.kids)

    def _said_bye(self, now_us: int, sender: Address, tree: Tree) -> list[Effect]:
        place = self.places.get(tree)
        if place is None:
            return []
        place.children.pop(sender, None)
        if place.joining is not None and sender == place.joining.to:
            return self._give_up(place)
        return self._let_go(now_us, place) if sender == place.parent else []

    def _look_after_children(self, now_us: int, place: Place) -> list[Effect]:
        for address, child in list(place.children.items()):
            if now_us - child.heard_us > self.times.lease_us or self._members.is_down(address):
                del place.children[address]
        return self._beats(place)

    def _beats(self, place: Place) -> list[Effect]:
        return [self._beat(place, child) for child in place.children]

    def _beat(self, place: Place, to: Address) -> Effect:
        siblings = tuple(c for c in place.children if c != to)
        known = place.children[to].version
        beat = say.Beat(place.tree, place.path, place.stamp, siblings, place.siblings, known)
        return Send(to, beat)

    def _goodbyes(self) -> list[Effect]:
        """Before this node leaves: those below look for another parent at once."""
        effects: list[Effect] = []
        for place in self.places.values():
            near = [*([place.parent] if place.parent is not None else []), *place.children]
            effects += [Send(a, say.Bye(place.tree)) for a in near]
        return effects
