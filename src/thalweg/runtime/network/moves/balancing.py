"""The balancer of a live network: one node collects loads, decides, and asks for moves.

Decisions are those of `adapt/balancing/fragments.py`; moves are those that anybody may ask for, so
that a manager that dies leaves nothing behind, and one that begins anew looks again. What it did
and why is in the journals of moves (`thalweg network moves`).
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

import msgspec

from thalweg.adapt.balancing.fragments import (
    Decision,
    FragmentBalancer,
    FragmentLoad,
    NodeLoad,
    Settings,
)
from thalweg.engine.shared.moving.export import movable
from thalweg.engine.shared.moving.manifest import CannotMove
from thalweg.engine.shared.state.names import state_owner, stem_stream
from thalweg.engine.site import SiteError
from thalweg.engine.supervised import SupervisedThread
from thalweg.plan.engines import SHARED
from thalweg.plan.nodes import resolution_us
from thalweg.runtime.data.client import NotServed, Unreachable
from thalweg.runtime.data.fragments import Fragment, is_fragment, whole_reach
from thalweg.runtime.data.messages import Shift, Weigh, Weighed
from thalweg.runtime.data.server import CannotPublish
from thalweg.runtime.network.fragments.publishing import note_of
from thalweg.runtime.network.measuring import memory_bytes, row_bits

if TYPE_CHECKING:
    from thalweg.runtime.network.node import Node

log = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0


class Balancing:
    """At every node: tells its load, and begins moves that the manager asks for; at the manager,
    also the thread that does."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._lock = threading.Lock()
        self._before: tuple[float, dict[str, float]] = (time.monotonic(), {})
        self._sent_before = 0
        self._told: NodeLoad | None = None
        self._stop = threading.Event()
        self._thread: SupervisedThread | None = None

    # --- at every node

    def weigh(self) -> NodeLoad:
        """Since it was asked before; within a second the same."""
        with self._lock:
            now, (since, before) = time.monotonic(), self._before
            if self._told is not None and now - since < 1.0:
                return self._told
            costs = self._node.site.status.seconds()
            spent = {n: max(0.0, c - before.get(n, 0.0)) / (now - since) for n, c in costs.items()}
            self._before = now, costs
            # One that has just come may not have ticked yet.
            names = sorted(q.name for q in self._node.site.catalog.queries())
            found = (self._fragment(n, spent.get(n, 0.0)) for n in names if is_fragment(n))
            fragments = [f for f in found if f is not None]
            sent, sent_before = self._node.data.sent_bytes, self._sent_before
            self._sent_before = sent
            self._told = NodeLoad(
                self._node.name,
                sum(spent.values()),
                tuple(fragments),
                self._is_busy(),
                self._node.meter.in_bps(),
                8 * (sent - sent_before) / (now - since),
                memory_bytes(),
                self._node.limits.memory_bytes,
            )
            return self._told

    def _is_busy(self) -> bool:
        moving = self._node.moving
        return moving is not None and any(not r.is_over for r in moving.journal.all())

    def _fragment(self, query: str, cores: float) -> FragmentLoad | None:
        node, engine = self._node, self._node.site.engine
        note = engine.store.note(note_of(query))
        if note is None or node.moving is None or node.moving.is_given(query):
            return None
        fragment = msgspec.msgpack.decode(note, type=Fragment)
        reach, readers = whole_reach(fragment), node.data.publications.sharers.of(query)
        try:
            run = movable(engine, query)
        except CannotMove:
            return None
        rates = node.meter.rows_per_s()
        streams = [engine.streams[s] for s in run.streams]
        return FragmentLoad(
            readers[0],
            cores,
            sum(
                s.size
                for s in list(engine.manifest)
                if stem_stream(s.table) in run.streams
                or ((owner := state_owner(s.table)) is not None and owner[0] == run.flow)
            ),
            sum(rates.get(s.name, 0.0) * row_bits(s) / 8 for s in streams),
            None if reach is None else reach * resolution_us(fragment.node) / 1e6,
            node.moving.goes_on_tracks(query),
        )

    def shift(self, asked: Shift) -> None:
        """Raises CannotPublish."""
        node, by = self._node, f"{asked.by} at {asked.manager}"
        try:
            node.move(asked.publication, asked.to, asked.way, asked_by=by, why=asked.why)
        except SiteError as error:
            raise CannotPublish(str(error)) from None

    # --- at the manager

    def manage(
        self, settings: Settings, look_every_s: float = LOOK_EVERY_S, *, advises: bool = False
    ) -> None:
        """From now on. `advises`: another controller moves fragments, and this one only says what
        it would."""
        balancer = FragmentBalancer(settings)

        def work() -> None:
            while not self._stop.wait(look_every_s):
                decision = balancer.decide(time.monotonic(), self.loads())
                if decision is not None and advises:
                    self._advise(decision)
                elif decision is not None:
                    self._carry_out(decision)

        def failed(error: BaseException) -> float:
            log.warning("the balancer begins again: %s", error)
            return look_every_s

        self._thread = SupervisedThread("balancer", work, stop=self._stop, failed=failed)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)

    def loads(self) -> list[NodeLoad]:
        """Of all nodes of this site that answer, and whose engine hands state over and takes it."""
        found = []
        for info in self._node.directory.nodes():
            if info.site != self._node.directory.me.site:
                continue
            if info.engine != SHARED or not self._node.directory.is_up(info.name):
                continue
            if info.name == self._node.name:
                found.append(self.weigh())
                continue
            try:
                client = self._node.mirrors.connect(info.name)
                try:
                    answer = client.ask(Weigh(self._node.name))
                finally:
                    client.close()
            except (Unreachable, NotServed) as error:
                log.info("%s is left out: %s", info.name, error)
                continue
            assert isinstance(answer, Weighed)
            found.append(answer.load)
        return found

    def _advise(self, decision: Decision) -> None:
        me, moving = self._node.name, self._node.moving
        if moving is not None:
            by, d = f"balancer at {me}", decision
            moving.journal.advise(d.publication, d.at, d.to, d.way, by, d.why)

    def _carry_out(self, decision: Decision) -> None:
        log.info("%s goes to %s: %s", decision.publication, decision.to, decision.why)
        me = self._node.name
        asked = Shift(decision.publication, me, decision.to, decision.way, decision.why)
        try:
            if decision.at == me:
                self.shift(asked)
                return
            client = self._node.mirrors.connect(decision.at)
            try:
                client.ask(asked)
            finally:
                client.close()
        except (Unreachable, NotServed, CannotPublish) as error:
            log.warning("%s stays at %s: %s", decision.publication, decision.at, error)
