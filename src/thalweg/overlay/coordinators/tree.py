"""The coordinator tree: nodes in clusters of near ones, led by their medians, level by level.

Source: COSMOS (seed 000) 3.3.3, after NICE (Banerjee, Bhattacharjee, Kommareddy, 2002): clusters of
k to 3k − 1, the median as parent, joins directed down from the root, heartbeats, splits with small
radii, merges with the nearest sibling, re-election of the centre. Added here: what happens when
messages or nodes are lost, which the source leaves out.

Messages: see `messages`. All knowledge is leased. A leader that is not answered forgets the member;
a member that hears nothing has lost its parent; who is addressed by a leader that is not its own
says NotYours. So whatever was lost or doubled, each pair agrees again within a lease.

- *Parent lost*: its cluster's deputy (the next best median, named in every heartbeat) leads on, and
  looks for a place above. If it does not either, each member looks for a place by itself, and
  brings along what is below it.
- *Root lost*: the deputy of its highest cluster is the root. *Partition*: each side has a root.
- *A node without a parent is a root, and every root looks for others*, through the members that it
  knows of. Of two roots the lower one (of equals, the later name) joins the tree of the other.

Promise: at any time, parents are higher than their children, so there are no circles. Once quiet:
one tree; clusters of k to 3k − 1 (fewer at the root only); a root has two children or more; each
parent is a median of its cluster, up to a tolerance.
"""

from __future__ import annotations

from typing import ClassVar

from thalweg.overlay.coordinators import messages as say
from thalweg.overlay.coordinators.seeking import Seeking
from thalweg.overlay.coordinators.tending import Tending
from thalweg.overlay.coordinators.tree_state import Members, TreeSettings
from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import (
    Address,
    Effect,
    Event,
    Init,
    Leave,
    Message,
    Receive,
    Send,
    SetTimer,
    TimerFired,
)

__all__ = ["CoordinatorTree", "Members", "TreeSettings"]


class CoordinatorTree(Tending, Seeking):
    name = "coordinators"
    messages: ClassVar[tuple[type[Message], ...]] = say.ALL
    listens_to: ClassVar[tuple[str, ...]] = ()

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if isinstance(event, Receive):
            return self._received(now_us, event.sender, event.message)
        if isinstance(event, TimerFired):
            return self._beat(now_us) if event.key == "beat" else self._descend(now_us)
        if isinstance(event, Init):
            self._own = self.root = event.address
            self._generator = Generator(event.seed)
            first_us = self._generator.between(1, self.settings.heartbeat_us)
            return [SetTimer("beat", first_us)]
        if isinstance(event, Leave):
            return self._leave(now_us)
        return []

    # --- heartbeats: what is done regularly ---

    def _beat(self, now_us: int) -> list[Effect]:
        effects: list[Effect] = [SetTimer("beat", self.settings.heartbeat_us)]
        effects += self._watch_parent(now_us)
        self._expire(now_us)
        effects += self._repeat_handover()
        effects += self._tend_clusters(now_us)
        effects += self._look_for_others(now_us)
        for level in range(self.place.height):
            effects += self._heartbeats(level)
        effects += self._measure(now_us)
        return effects

    def _repeat_handover(self) -> list[Effect]:
        if self._handover is None:
            return []
        to, message = self._handover
        if self.place.parent == to:
            return [Send(to, message)]
        self._handover = None
        return []

    def _expire(self, now_us: int) -> None:
        lease_us = self.settings.lease_us
        for cluster in self.place.led:
            silent = [m for m in cluster.others if now_us - cluster.members[m].heard_us > lease_us]
            for address in silent:
                cluster.remove(now_us, address)
            if now_us - cluster.changed_us > 2 * lease_us:
                cluster.replaces = None

    def _measure(self, now_us: int) -> list[Effect]:
        near = self.place.near(self._own)
        searched = list(self._search.candidates) if self._search is not None else []
        self._distances.forget_all_but([*near, *searched])
        beat_us = self.settings.heartbeat_us
        old_us = self.settings.remeasure_heartbeats * beat_us
        due = self._distances.to_ask(now_us, near, old_us, 2 * beat_us)
        return [Send(m, say.Ping(now_us)) for m in due]

    # --- the parent ---

    def _watch_parent(self, now_us: int) -> list[Effect]:
        place, lease_us = self.place, self.settings.lease_us
        if place.parent is None:
            return []
        silent_us = now_us - place.parent_heard_us
        view = place.view
        if silent_us > lease_us and view is not None and view.deputy == self._own:
            return self._take_over(now_us, place.parent, view)
        # The others give the deputy time to speak up.
        return self._orphaned(now_us) if silent_us > 2 * lease_us else []

    def _take_over(self, now_us: int, lost: Address, view: say.Heartbeat) -> list[Effect]:
        members = [m for m in view.members if m != lost]
        self._lead(now_us, members, replaces=lost)
        self._hints = [a for a in view.above if a != lost]
        return self._become_root()

    def _orphaned(self, now_us: int) -> list[Effect]:
        view = self.place.view
        if view is not None:
            self._hints = [view.root, *view.above, *self.place.siblings(self._own)]
        return self._become_root()

    def _accept(self, now_us: int, leader: Address, beat: say.Heartbeat) -> None:
        place = self.place
        if leader != place.parent:
            self._search = self._handover = None
            self._hints = []
        elif self._handover is not None and self._handover[0] == leader:
            self._handover = None
        place.parent, place.parent_heard_us, place.view = leader, now_us, beat
        self.root = beat.root

    # --- messages ---

    def _received(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        match message:
            case say.Heartbeat():
                return self._heard_beat(now_us, sender, message)
            case say.Here():
                return self._heard_here(now_us, sender, message)
            case say.Ping(stamp_us):
                return [Send(sender, say.Pong(stamp_us))]
            case say.Pong(stamp_us):
                return self._heard_pong(now_us, sender, now_us - stamp_us)
            case say.Ask():
                return self._asked(now_us, sender, message)
            case say.Below():
                return self._told_below(now_us, sender, message)
            case say.Join(level):
                return self._joined(now_us, sender, level)
            case say.Bye(level):
                if level < self.place.height:
                    self.place.led[level].remove(now_us, sender)
                return []
            case say.NotYours(level):
                return self._disowned(now_us, sender, level)
            case say.Promote():
                return self._promoted(now_us, sender, message)
            case say.Merge():
                return self._merged(now_us, sender, message)
            case say.Absorb(level):
                return self._absorbed(now_us, sender, level)
        return []

    def _heard_beat(self, now_us: int, sender: Address, beat: say.Heartbeat) -> list[Effect]:
        place = self.place
        wanted = sender == place.parent or place.is_root or beat.replaces == place.parent
        if beat.level != place.height or self._own not in beat.members or not wanted:
            return [Send(sender, say.NotYours(beat.level))]
        self._accept(now_us, sender, beat)
        distances = tuple(
            (m, d)
            for m in beat.members
            if m != self._own and (d := self._distances.to(m)) != say.UNKNOWN
        )
        return [Send(sender, say.Here(beat.level, distances))]

    def _heard_here(self, now_us: int, sender: Address, message: say.Here) -> list[Effect]:
        if message.level < self.place.height:
            cluster = self.place.led[message.level]
            cluster.hear(now_us, sender, dict(message.distances_us))
        return []

    def _heard_pong(self, now_us: int, sender: Address, round_trip_us: int) -> list[Effect]:
        self._distances.observe(sender, round_trip_us)
        if self._search is not None and self._search.answered(sender, round_trip_us):
            return self._descend(now_us)
        return []

    def _disowned(self, now_us: int, sender: Address, level: int) -> list[Effect]:
        if level < self.place.height:
            self.place.led[level].remove(now_us, sender)
        elif sender == self.place.parent and level == self.place.height:
            return self._orphaned(now_us)
        elif self._search is not None and self._search.asked == sender:
            self._search = None
        return []
