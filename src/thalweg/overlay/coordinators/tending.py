"""Clusters that are too large, too small, or led off centre (COSMOS 3.3.3, rules 2 to 5)."""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.overlay.coordinators import messages as say
from thalweg.overlay.coordinators.clustering import split, total
from thalweg.overlay.coordinators.state import Cluster
from thalweg.overlay.coordinators.tree_state import TreeState
from thalweg.overlay.protocol import Address, Effect, Message, Send


class Tending(TreeState):
    def _tend_clusters(self, now_us: int) -> list[Effect]:
        """At most one change of the structure a heartbeat, so that its effects can be seen."""
        place = self.place
        if place.is_root and place.led and len(place.led[-1].members) == 1:
            place.led.pop()  # a root of one child collapses
            return []
        for level, cluster in enumerate(place.led):
            size = len(cluster.members)
            if size > self.settings.largest and self._is_ripe(now_us, cluster):
                return self._split(now_us, level)
            if size < self.settings.k and now_us - cluster.changed_us > self.settings.lease_us:
                effects = self._merge(now_us, level)
                if effects:
                    return effects
        for level, cluster in enumerate(place.led):
            centre = cluster.ranked(self._distances)[0]
            is_other = centre != self._own and self._is_calm(now_us, cluster)
            if is_other and self._is_off_centre(cluster, centre):
                return self._hand_over(now_us, level, centre)
        return []

    def _is_ripe(self, now_us: int, cluster: Cluster) -> bool:
        """Measured, or large for so long that it will not be."""
        waited_us = now_us - cluster.changed_us
        return cluster.is_measured(self._distances) or waited_us > 2 * self.settings.lease_us

    def _is_calm(self, now_us: int, cluster: Cluster) -> bool:
        calm_us = self.settings.lease_us
        return now_us - cluster.changed_us > calm_us and cluster.is_measured(self._distances)

    def _is_off_centre(self, cluster: Cluster, centre: Address) -> bool:
        members = sorted(cluster.members)
        own, best = (
            total(m, members, lambda a, b: cluster.distance(self._distances, a, b))
            for m in (self._own, centre)
        )
        return own > best * (1 + self.settings.tolerance)

    def _split(self, now_us: int, level: int) -> list[Effect]:
        """Rule 3. This node keeps its half; the other half gets its own centre at once."""
        place, cluster = self.place, self.place.led[level]
        halves = split(
            sorted(cluster.members),
            3 * self.settings.k // 2,
            lambda a, b: cluster.distance(self._distances, a, b),
        )
        other = halves[0] if self._own in halves[1].members else halves[1]
        for address in other.members:
            cluster.remove(now_us, address)
        if level + 1 == place.height and place.is_root:
            self._lead(now_us, [], None)  # the root of one cluster becomes the root of two
        if level + 1 < place.height:
            place.led[level + 1].add(now_us, other.centre)
            parent: Address | None = self._own
        else:
            parent = place.parent
        return [Send(other.centre, say.Promote(level, (other.members,), parent))]

    def _merge(self, now_us: int, level: int) -> list[Effect]:
        """Rule 4, with the nearest sibling. Who leads the level above too can't give its own."""
        place = self.place
        if level + 1 < place.height:
            return self._to_nearest(place.led[level + 1].others, say.Absorb(level))
        if place.parent is None:
            return []
        members = tuple(sorted(place.led[level].members))
        effects = self._to_nearest(place.siblings(self._own), say.Merge(level, members))
        if effects:
            effects.append(Send(place.parent, say.Bye(level + 1)))
            send = effects[0]
            assert isinstance(send, Send)
            self._step_down(now_us, level, send.to)
            self._handover = (send.to, send.message)
        return effects

    def _to_nearest(self, others: Sequence[Address], message: Message) -> list[Effect]:
        known = [(d, o) for o in others if (d := self._distances.to(o)) != say.UNKNOWN]
        return [Send(min(known)[1], message)] if known else []

    def _hand_over(self, now_us: int, level: int, to: Address) -> list[Effect]:
        """Rule 5: another leads from this level upwards, and takes this node's place above."""
        place = self.place
        clusters = [tuple(sorted(place.led[level].members))]
        clusters += [tuple(sorted({to, *upper.others})) for upper in place.led[level + 1 :]]
        message = say.Promote(level, tuple(clusters), place.parent)
        effects: list[Effect] = [Send(to, message)]
        if place.parent is not None:
            effects.append(Send(place.parent, say.Bye(place.height)))
        self._step_down(now_us, level, to)
        self._handover = (to, message)
        return effects

    def _leave(self, now_us: int) -> list[Effect]:
        """Rule 2: children get a new parent among themselves before this node goes."""
        effects: list[Effect] = []
        place = self.place
        if place.parent is not None:
            effects.append(Send(place.parent, say.Bye(place.height)))
        for level, cluster in enumerate(place.led):
            heir = cluster.deputy(self._distances)
            if heir is not None:
                clusters = [tuple(sorted(cluster.others))]
                clusters += [tuple(sorted({heir, *u.others})) for u in place.led[level + 1 :]]
                return [*effects, Send(heir, say.Promote(level, tuple(clusters), place.parent))]
        return effects

    def _promoted(self, now_us: int, sender: Address, message: say.Promote) -> list[Effect]:
        place = self.place
        if sender != place.parent or message.level != place.height:
            return []  # late, or a copy: this node has moved on
        for members in message.clusters:
            self._lead(now_us, members, replaces=sender)
        if message.parent is None:
            self._hints = []
            self._become_root()
        else:
            place.parent, place.parent_heard_us, place.view = message.parent, now_us, None
        effects: list[Effect] = []
        for level in range(message.level, place.height):
            effects += self._heartbeats(level)
        if message.parent is not None and message.parent != sender:
            effects.append(Send(message.parent, say.Join(place.height)))
        return effects

    def _merged(self, now_us: int, sender: Address, message: say.Merge) -> list[Effect]:
        place, level = self.place, message.level
        if level == place.height and place.parent == sender and self._own < sender:
            # Both gave their clusters to each other: the earlier name takes both.
            self._lead(now_us, [], replaces=sender)
            self._become_root()
        if level >= place.height:
            return [Send(sender, say.NotYours(level))]
        cluster = place.led[level]
        for address in message.members:
            cluster.add(now_us, address)
        cluster.replaces = sender
        if level + 1 < place.height:
            place.led[level + 1].remove(now_us, sender)
        return self._heartbeats(level)

    def _absorbed(self, now_us: int, sender: Address, level: int) -> list[Effect]:
        place = self.place
        if sender != place.parent or level + 1 != place.height:
            return []
        members = tuple(sorted(place.led[level].members))
        self._step_down(now_us, level, sender)
        message = say.Merge(level, members)
        self._handover = (sender, message)
        return [Send(sender, message)]
