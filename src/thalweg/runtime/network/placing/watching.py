"""A node looks whether what its queries were given still fits, and plans anew where it does not.

What nodes use is what the planner's model says of all that is placed, over rates and costs as they
are measured now. `adapt/replanning.py` decides; `replacing.py` carries out.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from thalweg.adapt.replanning import (
    NO_LIMITS,
    UNLIMITED,
    Choice,
    Policy,
    Priced,
    Use,
    Watch,
    reasons,
)
from thalweg.engine.failures import FAILURES
from thalweg.engine.site import SiteError
from thalweg.plan.nodes import base_streams
from thalweg.runtime.data.fragments import digest, inlined, whole_reach
from thalweg.runtime.network.asking import measured_by
from thalweg.runtime.network.measuring import NodeMeasure, Task
from thalweg.runtime.network.placing.deploying import PLANNED, gain_of, uses_now
from thalweg.runtime.network.placing.difference import Change

if TYPE_CHECKING:
    from thalweg.runtime.network.node import Node

log = logging.getLogger(__name__)

_KEPT = 50  # looks that led to a plan


class Look(msgspec.Struct, frozen=True):
    """What spoke for a new plan, and what came of it."""

    at: str  # the time, for people
    strategy: str
    reasons: tuple[str, ...]
    moves: tuple[str, ...]  # fragment: from -> to
    decision: str


class Watcher:
    """`every_s` None: nothing is looked at. `advises`: somebody else decides, and this only says
    what it would do."""

    def __init__(
        self,
        node: Node,
        every_s: float | None,
        policy: Policy | None = None,
        *,
        advises: bool = False,
    ) -> None:
        self._node, self._every_s, self._advises = node, every_s, advises
        self._policy = policy or Policy()
        self._watch = Watch(self._policy)
        self._foreseen: dict[str, Use] = {}
        self._running: object = None  # what was foreseen for it
        self._looks: deque[Look] = deque(maxlen=_KEPT)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._every_s is not None:
            self._thread = threading.Thread(target=self._run, name="watching", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._stop.set()

    def looks(self) -> list[Look]:
        """Those that led to a plan, the last ones first."""
        return list(reversed(self._looks))

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            try:
                self.look(time.monotonic())
            except FAILURES as error:
                if not self._stop.is_set():  # the network changes while it is looked at
                    log.warning("whether plans still fit can't be told now: %s", error)

    def look(self, now_s: float) -> list[Look]:
        """Plan anew what does not fit any more. Raises SiteError."""
        node = self._node
        # What nodes have decided together, they decide anew together.
        own = [t for t in node.tasks.all() if t.strategy in PLANNED and t.decided is None]
        present = node.replacing.present()
        if not own or (present is not None and not present.is_over):
            return []
        measured = list(measured_by(node))
        uses = uses_now(node.planning.homes(), measured)
        running = tuple(sorted((t.query, t.runs, t.sends) for n in measured for t in n.tasks))
        if running != self._running:
            # Planned, moved or dropped since the last look: it is as whoever did it foresaw.
            known = self._foreseen or uses
            self._foreseen = {name: uses.get(name, use) for name, use in known.items()}
            self._watch.begin_anew(uses)
            self._running = running
        found = reasons(self._foreseen, self._watch.smoothed(uses), _limits(measured), self._policy)
        if self._watch.left:
            found.append(f"{self._watch.left} moves of the last plan are left")
        if failed := sum(s.state == "failed" for s in present.steps) if present else 0:
            found.append(f"{failed} moves of the last plan have failed")
        if not found or not self._watch.may_plan(now_s):
            return []
        self._foreseen = uses
        made = [
            self._plan(now_s, strategy, [t for t in own if t.strategy == strategy], measured, found)
            for strategy in sorted({t.strategy for t in own})
        ]
        self._looks.extend(made)
        return made

    def _plan(
        self,
        now_s: float,
        strategy: str,
        tasks: Sequence[Task],
        measured: Sequence[NodeMeasure],
        found: Sequence[str],
    ) -> Look:
        node = self._node
        everything = [t for n in measured for t in n.tasks]
        try:
            wanted, _, planned = node.planning.planned_again(strategy, measured, tasks)
            prices = {s.change.publication: _price(s.change, measured) for s in wanted.steps}
            moves = [Priced(publication, bits) for publication, bits in prices.items()]
            choice = self._watch.choose(now_s, moves, gain_of(planned, everything))
            chosen = {m.what for m in choice.chosen}
            steps = tuple(s for s in wanted.steps if s.change.publication in chosen)
            if steps and not self._advises:
                node.replacing.begin(msgspec.structs.replace(wanted, steps=steps))
        except SiteError as error:
            steps, choice = (), Choice((), f"{strategy} has no better plan: {error}")
        told = [f"{digest(s.change.fragment)}: {s.change.was} -> {s.change.to}" for s in steps]
        when = time.strftime("%F %T")
        why = f"advice, as another controller decides here: {choice.why}"
        return Look(when, strategy, tuple(found), tuple(told), why if self._advises else choice.why)


def _limits(measured: Sequence[NodeMeasure]) -> dict[str, Use]:
    def limit(found: float | None) -> float:
        return UNLIMITED if found is None else found

    found = {n.name: Use(limit(n.cpu), limit(n.out_bps), limit(n.in_bps)) for n in measured}
    return {name: use for name, use in found.items() if use != NO_LIMITS}


def _price(change: Change, measured: Sequence[NodeMeasure]) -> float:
    """Bits that are sent once more: what the fragment's windows hold, at the rates of now."""
    reach = whole_reach(change.fragment) or 0
    rates = {name: s for n in measured for name, s in n.streams.items()}
    bits = 0.0
    for stream in base_streams(inlined(change.fragment)):
        if stream.name in rates:
            seconds = reach * stream.resolution_us / 1e6
            bits += seconds * rates[stream.name].rows_per_s * rates[stream.name].row_bits
    return bits
