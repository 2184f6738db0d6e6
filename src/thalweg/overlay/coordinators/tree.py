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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from thalweg.overlay.coordinators import messages as say
from thalweg.overlay.coordinators.clustering import split, total
from thalweg.overlay.coordinators.distances import Distances
from thalweg.overlay.coordinators.search import Search, yields
from thalweg.overlay.coordinators.state import Cluster, Place
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


class Members(Protocol):
    def up(self) -> Sequence[Address]: ...


@dataclass(frozen=True, slots=True)
class TreeSettings:
    k: int = 4
    heartbeat_us: int = 1_000_000
    lease_heartbeats: int = 4
    remeasure_heartbeats: int = 10
    tolerance: float = 0.1  # a parent stays while no other has a total distance so much less

    def __post_init__(self) -> None:
        if self.k < 2:
            raise ValueError(f"clusters of k = {self.k}: 2 is the least")
        if self.heartbeat_us < 1 or self.lease_heartbeats < 2 or self.remeasure_heartbeats < 1:
            raise ValueError("a lease is two heartbeats or more, and a heartbeat takes some time")
        if self.tolerance < 0:
            raise ValueError(f"a tolerance of {self.tolerance} can't be negative")

    @property
    def largest(self) -> int:
        return 3 * self.k - 1

    @property
    def lease_us(self) -> int:
        return self.lease_heartbeats * self.heartbeat_us


class CoordinatorTree:
    name = "coordinators"
    messages: ClassVar[tuple[type[Message], ...]] = say.ALL
    listens_to: ClassVar[tuple[str, ...]] = ()

    def __init__(self, members: Members, settings: TreeSettings | None = None) -> None:
        self.settings = settings or TreeSettings()
        self.place = Place()
        self.root: Address = ""
        self._members = members
        self._own: Address = ""
        self._generator = Generator(0)
        self._distances = Distances()
        self._search: Search | None = None
        self._hints: list[Address] = []  # whom to ask first for a place above
        self._handover: tuple[Address, Message] | None = None  # repeated until its effect shows

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

    def _heartbeats(self, level: int) -> list[Effect]:
        cluster = self.place.led[level]
        message = say.Heartbeat(
            level,
            tuple(sorted(cluster.members)),
            cluster.deputy(self._distances),
            self._above(level),
            self.root,
            cluster.replaces,
        )
        return [Send(m, message) for m in cluster.others]

    def _above(self, level: int) -> tuple[Address, ...]:
        """Where someone who leads this level instead of this node finds the level above."""
        if level + 1 < self.place.height:
            upper = self.place.led[level + 1].ranked(self._distances)
            return tuple(m for m in upper if m != self._own)[:3]
        return () if self.place.parent is None else (self.place.parent,)

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

    def _become_root(self) -> list[Effect]:
        self.place.parent = self.place.view = self._search = self._handover = None
        self.root = self._own
        return []

    def _accept(self, now_us: int, leader: Address, beat: say.Heartbeat) -> None:
        place = self.place
        if leader != place.parent:
            self._search = self._handover = None
            self._hints = []
        elif self._handover is not None and self._handover[0] == leader:
            self._handover = None
        place.parent, place.parent_heard_us, place.view = leader, now_us, beat
        self.root = beat.root

    def _lead(self, now_us: int, members: Sequence[Address], replaces: Address | None) -> Cluster:
        """One level more."""
        cluster = Cluster(self._own, {}, now_us, replaces)
        for address in sorted({self._own, *members}):
            cluster.add(now_us, address)
        self.place.led.append(cluster)
        return cluster

    def _step_down(self, now_us: int, level: int, parent: Address) -> None:
        """Lead what is below `level` only, and be a member there."""
        del self.place.led[level:]
        self.place.parent, self.place.parent_heard_us, self.place.view = parent, now_us, None
        self._search = None

    # --- too many, too few, or off centre ---

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
            if self._is_calm(now_us, cluster) and self._is_off_centre(cluster, centre):
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

    # --- roots look for other roots ---

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
            member = self.place.led[message.level].members.get(sender)
            if member is not None:
                member.heard_us = now_us
                member.distances_us = dict(message.distances_us)
        return []

    def _heard_pong(self, now_us: int, sender: Address, round_trip_us: int) -> list[Effect]:
        self._distances.observe(sender, round_trip_us)
        if self._search is not None and self._search.answered(sender, round_trip_us):
            return self._descend(now_us)
        return []

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

    def _disowned(self, now_us: int, sender: Address, level: int) -> list[Effect]:
        if level < self.place.height:
            self.place.led[level].remove(now_us, sender)
        elif sender == self.place.parent and level == self.place.height:
            return self._orphaned(now_us)
        elif self._search is not None and self._search.asked == sender:
            self._search = None
        return []

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
