"""What protocols decide while queries stand is followed, by moves of fragments that anybody may ask
for.

One look after the other, at the node where queries stand. Each compares what a protocol says now
with the last word that was followed (`Task.decided`), so that a crash in between, or a move that
fails, is made up for by a later look; and what people move by hand stays until nodes think anew.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from thalweg.adapt.handover.messages import PRECOPY
from thalweg.engine.failures import FAILURES
from thalweg.engine.site import WrongUse
from thalweg.plan.nodes import base_streams
from thalweg.plan.travelling import decode_plan
from thalweg.plan.windows import FOREVER
from thalweg.runtime.data.client import NotServed, Unreachable
from thalweg.runtime.data.fragments import nodes_of
from thalweg.runtime.data.messages import Shift
from thalweg.runtime.data.server import CannotPublish
from thalweg.runtime.driver.errors import DriverClosed
from thalweg.runtime.network.asking import measured_by
from thalweg.runtime.network.measuring import Decided, Task
from thalweg.runtime.network.moves.journal import REPLAY
from thalweg.runtime.network.placing.deploying import Placement
from thalweg.runtime.network.placing.difference import Running
from thalweg.runtime.network.protocols.outcomes import (
    coordinator_words,
    decided_anew,
    decided_as,
    decode_asked,
    encode_asked,
    has_drifted,
    zone_words,
)
from thalweg.runtime.network.protocols.stack import COSMOS
from thalweg.runtime.network.protocols.statistics import Statistics

if TYPE_CHECKING:
    from thalweg.overlay.sand.query import TreeQuery
    from thalweg.runtime.network.node import Node
    from thalweg.runtime.network.protocols.deciding import Deciding

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
RATES_EVERY_S = 30.0  # so often rates are compared with those that zones were told
DRIFT = 0.25  # of a stream's rate, by which it has become another one
_AGAIN_AFTER_S = 10.0  # what was asked for and does not show is asked for again
_LATER = "since then: "  # begins what is said of a query beside why it is where it is


class Following:
    """`every_s` None: only when it is told to look."""

    def __init__(self, node: Node, deciding: Deciding, every_s: float | None) -> None:
        self._node, self._deciding, self._every_s = node, deciding, every_s
        self._tried: dict[tuple[str, object], float] = {}  # until when not again
        self.statistics = Statistics(node, deciding.coordinators)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._every_s is not None:
            self._thread = threading.Thread(target=self._run, name="following", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            try:
                self.look()
            except FAILURES as error:
                if not self._stop.is_set() and not isinstance(error, DriverClosed):
                    log.warning("what nodes have decided can't be followed now: %s", error)

    def look(self) -> None:
        """Once."""
        self.statistics.tell()
        decided = [t for t in self._node.tasks.all() if t.decided is not None]
        self._drop_unused({t.decided.ticket for t in decided if t.decided is not None})
        for task in decided:
            try:
                if self._has_ended(task):
                    continue  # it stays where it is: nothing is left to be computed
                if task.strategy == COSMOS:
                    self._follow_owner(task)
                else:
                    self._follow_zones(task)
            except FAILURES as error:  # of this query alone
                log.info("%s is not where nodes want it yet: %s", task.query, error)

    def _has_ended(self, task: Task) -> bool:
        site = self._node.site
        return site.reader(site.query(task.query)).frontier().instant >= FOREVER

    def _drop_unused(self, standing: set[str]) -> None:
        if not self._deciding.is_idle:
            return
        # Asked for after the look at what stands: something may have come to stand meanwhile.
        for ticket in self._deciding.zones.asked():
            if ticket not in standing and self._deciding.is_idle:
                self._deciding.zones.drop(ticket)
        for ticket in self._deciding.coordinators.asked():
            if ticket not in standing and self._deciding.is_idle:
                self._deciding.coordinators.withdraw(ticket)

    def _may_try(self, key: tuple[str, object], again_after_s: float = _AGAIN_AFTER_S) -> bool:
        """Not again for a while."""
        now = time.monotonic()
        self._tried = {k: until for k, until in self._tried.items() if now < until}
        if key in self._tried:
            return False
        self._tried[key] = now + again_after_s
        return True

    # --- zones

    def _follow_zones(self, task: Task) -> None:
        """Operators are where their coordinators want them. Raises SiteError."""
        found = task.decided
        assert found is not None
        zones, names = self._deciding.zones, self._deciding.names
        if found.ticket not in zones.asked():
            # This node was stopped, and took back what it asked for.
            before = decode_asked(found.asked)
            self._ask_anew(task, structs.replace(before, name=self._deciding.ticket(task.query)))
            return
        if self._may_try((found.ticket, "rates"), RATES_EVERY_S):
            now = self._deciding.asked_now(task)
            if now is not None and has_drifted(decode_asked(found.asked), now, DRIFT):
                self._ask_anew(task, now)
                return
        stands = zones.stands().get(found.ticket)
        if stands is None:
            return
        at = tuple(names.names(stands.at))
        if at == found.at or not self._may_try((found.ticket, at)):
            return
        by = [(zone, names.shown(who)) for zone, who in stands.coordinators]
        self._place_anew(
            task,
            structs.replace(found, at=at),
            zone_words(decode_asked(found.asked), at, by),
        )

    def _ask_anew(self, task: Task, asked: TreeQuery) -> None:
        """What was asked before is dropped at the next look: nothing stands by it any more."""
        assert task.decided is not None
        again = Decided(asked.name, task.decided.at, encode_asked(asked))
        self._node.tasks.write(structs.replace(task, decided=again))
        self._may_try((asked.name, "rates"), RATES_EVERY_S)
        self._deciding.zones.ask_for(asked)

    def _place_anew(self, task: Task, wanted: Decided, words: tuple[str, ...]) -> None:
        node = self._node
        running = node.planning.running(task.query)
        streams, homes = base_streams(decode_plan(task.plan)), node.planning.homes()
        assert task.decided is not None
        concerned = {*wanted.at, *(r.at for r in running), node.name}
        concerned |= {homes[s.name] for s in streams if s.name in homes}
        measured = list(measured_by(node, {*concerned, *task.decided.at}))
        if concerned - {n.name for n in measured}:
            return  # of one that is gone, succession sees to it first
        decide = decided_anew(task.decided.at, wanted.at)
        if task.strategy == COSMOS:  # it is there already
            decide = decided_as(COSMOS, {task.query: wanted.at})
        found, stays, planned = node.planning.planned_again(task.strategy, measured, [task], decide)
        told = tuple(f"{s.at} goes on with its part: {s.why}" for s in stays)
        tasks = tuple(
            structs.replace(t, decided=wanted, words=(*t.words, *words, *told)) for t in found.tasks
        )
        if found.steps:
            node.replacing.begin(structs.replace(found, tasks=tasks))
            return
        if task.strategy != COSMOS:
            tasks = (_staying(task, wanted, planned.placements),)
        for new in tasks:
            node.tasks.write(new)

    # --- coordinators

    def _follow_owner(self, task: Task) -> None:
        """The query's fragment is where its owner is. Raises SiteError."""
        found = task.decided
        assert found is not None
        owner = self._deciding.coordinators.owners().get(found.ticket)
        if owner is None:
            return  # nobody has spoken yet since this node began
        (name,) = self._deciding.names.names([owner.address])
        if found.at == (name,):
            return
        for running in self._node.planning.running(task.query):
            if running.at != name:
                if self._may_try((running.publication, name)):
                    self._move(running, name)
                return
        words = coordinator_words(name, [self._deciding.names.shown(a) for a in owner.by])
        self._place_anew(task, structs.replace(found, at=(name,)), words)

    def _move(self, running: Running, to: str) -> None:
        """With its state, or else by replay. Raises SiteError."""
        node = self._node
        if not node.directory.is_up(running.at):
            return  # succession sees to it first
        why = "its coordinators gave the query to that node (COSMOS 3.3.7)"
        for way in (PRECOPY, REPLAY):
            asked = Shift(running.publication, node.name, to, way, why, "coordinators")
            try:
                if running.at == node.name:
                    node.balancing.shift(asked)
                else:
                    client = node.mirrors.connect(running.at)
                    try:
                        client.ask(asked)
                    finally:
                        client.close()
                return
            except (CannotPublish, NotServed) as error:
                refused = str(error)
            except Unreachable as error:
                raise WrongUse(f"{running.at} does not answer: {error}") from None
        raise WrongUse(refused)


def _staying(task: Task, wanted: Decided, planned: Sequence[Placement]) -> Task:
    """As it was, since going elsewhere does not pay, or only the part would go that its own node
    computes."""
    words = tuple(w for w in task.words if not w.startswith(_LATER))
    there = {at for p in planned for at in nodes_of(p.fragment)}
    if task.fragment is not None and there - set(nodes_of(task.fragment)):
        told = ", ".join(sorted(there))
        words += (f"{_LATER}zones want operators at {told}; what its own node computes stays",)
    return structs.replace(task, words=words, decided=wanted)
