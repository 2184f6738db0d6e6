"""The trees that carry streams, live: who has a stream from whom, while rows flow.

`overlay/trees` says under whom this node hangs, and sees to it that there are no circles and that
who loses its parent finds another. Here this is carried out: a mirror that is fed by one node is
fed by another from an instant on. While the old one is there, the new one chooses the instant; if
it is gone, it is the one up to which rows have come. Where a node would hang best, it asks the
stream's home (`choosing.py`). Where trees adapt in rounds, the home says so of newcomers only; then
whoever has the token moves its children and grandchildren, by what all of them have measured.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress
from dataclasses import dataclass

from thalweg.engine.failures import FAILURES
from thalweg.engine.site import Site
from thalweg.engine.site.publications import is_mirror, labels_of
from thalweg.overlay.stack import Stack
from thalweg.overlay.trees.carried import Came, Stood, Unwant, Want, Withdraw
from thalweg.overlay.trees.protocol import Capacity, Prefer
from thalweg.overlay.trees.row_messages import Follow, Offer
from thalweg.overlay.trees.settings import TreeTimes
from thalweg.overlay.trees.stream import Tree
from thalweg.plan.catalog import StreamDef
from thalweg.runtime.data.client import NotServed, Unreachable
from thalweg.runtime.data.messages import Carry, Hang, Hung
from thalweg.runtime.driver.driver import Driver
from thalweg.runtime.driver.errors import DriverClosed
from thalweg.runtime.network.directory import FED, Defined, Directory, NodeInfo
from thalweg.runtime.network.kept import Kept
from thalweg.runtime.network.labels.labels import fed_entry
from thalweg.runtime.network.measuring import DELAY_FOR_S, LATELY_S, LONG_S, Meter
from thalweg.runtime.network.mirrors.mirrored import home_of
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.trees.choosing import Choice, Nearest
from thalweg.runtime.network.trees.passing import Passing
from thalweg.runtime.network.trees.tree_book import TreeBook

log = logging.getLogger(__name__)

_SECOND_US = 1_000_000
_LEAST_GAIN = 0.05  # of what is lost: measured times are never quite the same
ROUND_S = 20.0


def tree_times(round_s: float | None) -> TreeTimes:
    """With rounds of adaptation, or (None) without: then the home says who moves. Information is
    collected four times in a round, as in the source. Rows go on meanwhile, so that a move may take
    its time."""
    return TreeTimes(
        round_us=None if round_s is None else max(1, round(round_s * _SECOND_US)),
        window_us=10 * _SECOND_US if round_s is None else max(1, round(round_s * _SECOND_US / 4)),
        move_us=20 * _SECOND_US,
        hold_us=60 * _SECOND_US,
        least_gain=_LEAST_GAIN,
    )


_LOOK_EVERY_S, _ASK_EVERY_S, _CARRY_FOR_S = 0.5, 2.0, 30.0
_PATIENCE_S = 10.0  # with an old publisher that does not say what is left to say


@dataclass(slots=True)
class _Move:
    """Whom a stream is to be had from."""

    to: str | None = None  # an address
    is_orphan: bool = False  # the one before is given up
    told: bool = False
    place: object = None
    since_s: float = 0.0  # that the place has not changed


class LiveTrees:
    def __init__(self, driver: Driver, directory: Directory, choice: Choice | None = None) -> None:
        self._driver, self._directory = driver, directory
        self.choice: Choice = choice or Nearest()
        self._moves: dict[Tree, _Move] = {}
        self._offered: set[Tree] = set()
        self._wanted: set[Tree] = set()
        self._carried: dict[str, float] = {}  # until when, by lower-cased name
        self._asked_s = 0.0
        self._woken, self._stop = threading.Event(), threading.Event()
        self._lock = threading.Lock()

    def attach(self, site: Site, mirrors: Mirrors, meter: Meter, passing: Passing) -> None:
        self._site, self._mirrors, self._meter, self._passing = site, mirrors, meter, passing
        self._homes = Kept(mirrors.connect)
        self.book = TreeBook(site, self._directory, meter, lambda: self.choice)
        mirrors.trees = True
        self._driver.on("subscriptions", self._told)
        self._thread = threading.Thread(target=self._run, name="trees", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._woken.set()
        self._thread.join(5)
        self._homes.close()

    # --- what others ask

    def above(self, stream: str) -> tuple[str, ...]:
        tree = self._tree(stream)
        if tree is None:
            return ()
        names = {n.address: n.name for n in self._directory.nodes()}
        return tuple(names.get(a, a) for a in self._driver.read(lambda s: _path(s, tree)))

    def parent_of(self, asked: Hang) -> Hung:
        return self.book.parent_of(asked)

    def carry(self, stream: str) -> None:
        with self._lock:
            self._carried[stream.lower()] = time.monotonic() + _CARRY_FOR_S
        self._woken.set()

    # --- what the protocol says

    def _told(self, value: object) -> None:
        if not isinstance(value, Follow):
            return
        with self._lock:
            move = self._moves.setdefault(value.tree, _Move())
            if value.publisher is None:
                move.is_orphan = True
            else:
                move.to, move.told = value.publisher, False
        self._woken.set()

    # --- what this node has, and wants

    def _run(self) -> None:
        while not self._stop.is_set():
            self._woken.wait(_LOOK_EVERY_S)
            self._woken.clear()
            try:
                self._look()
            except DriverClosed:
                return
            except FAILURES as error:
                if not self._stop.is_set():
                    log.warning("trees: %s", error)

    def _look(self) -> None:
        me = self._directory.me
        defined = self._directory.defined()
        own = {d.name for d in defined.values() if d.node == me.name and d.kind in FED}
        due = {s.name for s in self._site.catalog.streams() if labels_of(s) is not None}
        own |= due
        offered = {Tree(me.address, name) for name in own}
        for tree in sorted(offered - self._offered):
            self._call("subscriptions", Offer(tree))
        for tree in sorted(self._offered - offered):
            self._call("subscriptions", Withdraw(tree))
        self._offered = offered
        nodes = {n.name: n for n in self._directory.nodes()}
        mirrored = self._mirrored()
        now = time.monotonic()
        with self._lock:
            self._carried = {s: until for s, until in self._carried.items() if until > now}
            carried = set(self._carried)
        if me.only_passes_on and self.choice.in_rounds:
            # Rounds know only who is in the tree. Nothing is sent to a broker with nobody below.
            carried |= {key for key, d in defined.items() if d.kind in FED}
        wanted: dict[Tree, tuple[Defined, StreamDef | None]] = {}
        for key in {*mirrored, *carried}:
            entry = fed_entry(defined, key)
            if entry is not None and entry.node in nodes and entry.node != me.name:
                wanted[Tree(nodes[entry.node].address, entry.name)] = entry, mirrored.get(key)
        for tree in sorted(wanted.keys() - self._wanted):
            mirror = wanted[tree][1]
            at = None if mirror is None else nodes.get(self._mirrors.home(mirror))
            hints = () if at is None else (at.address,)
            self._call("subscriptions", Want(tree, hints, me.only_passes_on))
        for tree in sorted(self._wanted - wanted.keys()):
            self._call("subscriptions", Unwant(tree))
            self._moves.pop(tree, None)
        self._wanted = set(wanted)
        self._mirrors.release()
        for tree, (entry, mirror) in wanted.items():
            self._follow(tree, entry, mirror, nodes)
        if now - self._asked_s >= _ASK_EVERY_S:
            self._asked_s = now
            self._tell_measures(wanted)
            if self.choice.in_rounds:
                self._offer_to_brokers(due, nodes)
            for tree, (entry, mirror) in wanted.items():
                self._ask_home(tree, entry, mirror, nodes)

    def _tell_measures(self, wanted: Iterable[Tree]) -> None:
        """What rounds of adaptation decide by."""
        if not self.choice.in_rounds:
            return
        rates, (_, row_ms) = self._meter.rows_per_s(LATELY_S), self._meter.busy()
        # What a row takes is not told apart: half for looking at it, half for sending it, and as
        # much for this node itself as for each child.
        shares = 1 + self._driver.read(_children)
        each_us = 1000 * row_ms / shares / 2
        self._call("trees", Capacity(each_us, each_us, 1e6 * self._passing.hop_s()))
        for tree in wanted:
            self._call("subscriptions", Came(tree, rates.get(tree.stream, 0.0)))

    def _mirrored(self) -> dict[str, StreamDef]:
        """Mirrors of base streams, under their own names."""
        found = {}
        for stream in self._site.catalog.streams():
            if not is_mirror(stream):
                continue
            entry = fed_entry(self._directory.defined(), stream.name)
            if entry is not None and home_of(stream) == entry.node:
                found[stream.name.lower()] = stream
        return found

    def _tree(self, stream: str) -> Tree | None:
        entry = fed_entry(self._directory.defined(), stream)
        homes = [n for n in self._directory.nodes() if entry is not None and n.name == entry.node]
        return Tree(homes[0].address, entry.name) if homes and entry is not None else None

    def _call(self, protocol: str, request: object) -> None:
        with suppress(NotInTime):
            self._driver.call(protocol, request)

    # --- carrying it out

    def _follow(
        self, tree: Tree, entry: Defined, mirror: StreamDef | None, nodes: dict[str, NodeInfo]
    ) -> None:
        with self._lock:
            move = self._moves.setdefault(tree, _Move())
            to = next((n.name for n in nodes.values() if n.address == move.to), None)
        if to is None:
            return
        if mirror is not None and mirror.name in self._mirrors.unserved_here:
            self._mirrors.unserved_here.discard(mirror.name)
            # It may have come back without its disk; the home has held what is needed.
            if self._mirrors.awaited(mirror) != entry.node and self._alone(mirror, entry, to):
                return
        if mirror is None or self._is_fed_by(mirror, to):
            move.is_orphan = False
            if not move.told and move.to is not None:
                move.told = True
                self._call("subscriptions", Stood(tree, move.to))
                self._tell_home(mirror, entry)
            return
        place, needed = self._mirrors.place(mirror), self._mirrors.awaited(mirror)
        if place is None:
            return  # it begins, at the home
        if place != move.place:
            move.place, move.since_s = place, time.monotonic()
        is_stuck = time.monotonic() - move.since_s > _PATIENCE_S
        # Who has it from the home stays with it: nobody else could say what is left to say.
        is_gone = needed != entry.node and (move.is_orphan or not self._directory.is_up(needed))
        try:
            if needed != to and (is_gone or is_stuck) and self._alone(mirror, entry, to):
                move.is_orphan, move.since_s = False, time.monotonic()
                return
            is_settled = len(self._mirrors.routes(mirror)) == 1
            if self._mirrors.home(mirror) != to and is_settled and self._may(mirror, entry, to):
                self._mirrors.rehang(mirror, entry, to)
                log.info("%s is had from %s from an instant on", entry.name, to)
        except (Unreachable, NotServed) as error:
            log.info("%s can't be had from %s: %s", entry.name, to, error)

    def _alone(self, mirror: StreamDef, entry: Defined, to: str) -> bool:
        """Without the old publisher: from the new one, or else from the home."""
        for there in dict.fromkeys((to, entry.node)):
            if there == self._mirrors.awaited(mirror) or not self._may(mirror, entry, there):
                continue
            try:
                self._mirrors.rehang_alone(mirror, entry, there)
            except (Unreachable, NotServed) as error:
                log.info("%s can't be had from %s: %s", entry.name, there, error)
                continue
            log.info("%s is had from %s from where it has come", entry.name, there)
            return True
        return False

    def _is_fed_by(self, mirror: StreamDef, node: str) -> bool:
        """And by nobody before."""
        place, routes = self._mirrors.place(mirror), self._mirrors.routes(mirror)
        at_last = len(routes) == 1 and (place is None or place.publication == routes[0].publication)
        return at_last and self._mirrors.home(mirror) == node

    # --- where it would hang best

    def _ask_home(
        self, tree: Tree, entry: Defined, mirror: StreamDef | None, nodes: dict[str, NodeInfo]
    ) -> None:
        try:
            parent = nodes.get(self._hung(mirror, entry).parent)
            if parent is None:
                return
            if parent.only_passes_on:
                self._ask_to_carry(parent, entry.name)
        except (Unreachable, NotServed):
            return  # it stays where it is
        self._call("trees", Prefer(tree, parent.address))

    def _tell_home(self, mirror: StreamDef | None, entry: Defined) -> None:
        """From whom it has the stream now: others may have to wait for that to be known."""
        with suppress(Unreachable, NotServed):
            self._hung(mirror, entry)

    def _may(self, mirror: StreamDef, entry: Defined, to: str) -> bool:
        """Whether nobody would have the stream from itself: the home knows from whom all have it,
        and gives leave to one after the other. To have it from the home needs none."""
        return to == entry.node or self._hung(mirror, entry, to).granted

    def _hung(self, mirror: StreamDef | None, entry: Defined, to: str | None = None) -> Hung:
        """Raises Unreachable, NotServed."""
        me = self._directory.me.name
        others = [n for n in self._directory.nodes() if n.name != me]
        asked = Hang(
            entry.name,
            me,
            time.time_ns(),
            (entry.node,) if mirror is None else self._mirrors.publishers(mirror),
            self._meter.delays_ms(
                [n for n in others if self._directory.is_up(n.name)],
                # Rounds ping by themselves: this is for newcomers.
                LONG_S if self.choice.in_rounds else DELAY_FOR_S,
            ),
            self._meter.rows_per_s().get(entry.name, 0.0),
            self._meter.row_ms(),
            to,
            1000 * self._passing.hop_s(),
        )
        try:
            answer = self._homes.to(entry.node).ask(asked, within_s=5)
        except (Unreachable, NotServed):
            self._homes.drop(entry.node)
            raise
        assert isinstance(answer, Hung)
        return answer

    def _offer_to_brokers(self, streams: Iterable[str], nodes: dict[str, NodeInfo]) -> None:
        """Nobody else tells them that a stream of due rows is there."""
        for broker in nodes.values():
            if broker.only_passes_on and self._directory.is_up(broker.name):
                with suppress(Unreachable, NotServed):
                    for stream in streams:
                        self._ask_to_carry(broker, stream)

    def _ask_to_carry(self, broker: NodeInfo, stream: str) -> None:
        client = self._mirrors.connect(broker.name)
        try:
            client.ask(Carry(stream, self._directory.me.name), within_s=5)
        finally:
            client.close()


def _path(stack: Stack, tree: Tree) -> tuple[str, ...]:
    place = stack["trees"].places.get(tree)  # type: ignore[attr-defined]
    return () if place is None else tuple(place.path)


def _children(stack: Stack) -> int:
    """In all trees."""
    places = stack["trees"].places  # type: ignore[attr-defined]
    return sum(len(place.children) for place in places.values())
