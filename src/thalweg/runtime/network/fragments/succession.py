"""Fragments of nodes that are gone are computed here from where their rows have come.

The live side of `overlay/succession`. A reader says how far it has come; homes hold what that asks
for; if a fragment's node is silent for long, is forgotten, or has lost its disk, the reader begins
the fragment anew at that instant, by replay. What can't be replayed is lost from there on, once its
node is gone for good, and everybody is told.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress

import msgspec

from thalweg.engine.failures import FAILURES
from thalweg.engine.site import Site, SiteError, Unknown
from thalweg.engine.site.status import instant_text
from thalweg.overlay.stack import Stack
from thalweg.overlay.succession import (
    Follow,
    Following,
    Gone,
    Held,
    Hold,
    Need,
    Reached,
    TakeOver,
    Unfollow,
)
from thalweg.plan.catalog import StreamDef
from thalweg.plan.nodes import base_streams
from thalweg.plan.windows import BEGINNING, FOREVER
from thalweg.runtime.data.fragments import Fragment, inlined, whole_reach
from thalweg.runtime.driver.driver import Driver
from thalweg.runtime.driver.errors import DriverClosed
from thalweg.runtime.network.directory import Directory, NodeInfo, NotKnown, node_of
from thalweg.runtime.network.fragments.fragments import Fragments
from thalweg.runtime.network.mirrors.mirrored import NodeAway
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.moves.copying import Copies

log = logging.getLogger(__name__)

NAME = "succession"
_HELD_WITHIN_S = 30.0
_REPORT_EVERY_S, _TIDY_EVERY = 0.5, 10
_MOST_TAKEN = 100


class Taken(msgspec.Struct, frozen=True):
    """A fragment that is computed here since its node is gone; times are for people."""

    key: str
    of: str
    detected: float
    since: int | None = None
    at: float | None = None  # None: not yet
    lost: str | None = None


class LiveSuccession:
    def __init__(self, driver: Driver, directory: Directory) -> None:
        self._driver, self._directory = driver, directory
        self._addresses: dict[str, str] = {}  # of nodes that may be forgotten one day
        self._held: dict[str, threading.Event] = {}
        self._of: dict[str, str] = {}  # the node that is waited for, by what is read of it
        self._holds: queue.SimpleQueue[Hold] = queue.SimpleQueue()
        self._busy: set[str] = set()
        self._taken: deque[Taken] = deque(maxlen=_MOST_TAKEN)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self.copies: Copies | None = None

    def attach(self, site: Site, mirrors: Mirrors, fragments: Fragments) -> None:
        self._site, self._mirrors, self._fragments = site, mirrors, fragments
        self._driver.on(NAME, self._told)
        self._directory.on_gone(self._gone)
        mirrors.dropped, mirrors.unserved = self._dropped, self._unserved
        self._begin()
        for work in (self._run, self._hold):
            threading.Thread(target=work, name="succession", daemon=True).start()

    def close(self) -> None:
        self._stop.set()

    # --- what is read

    def follow(self, key: str, at: str, fragment: Fragment) -> None:
        """Raises NodeAway."""
        held = self._held.setdefault(key, threading.Event())
        self._follow(key, at, fragment)
        if not held.wait(_HELD_WITHIN_S):
            raise NodeAway("the homes of its streams do not answer: submit again when they do")

    def unfollow(self, key: str) -> None:
        self._held.pop(key, None)
        self._of.pop(key, None)
        self._call(Unfollow(key))

    def _follow(self, key: str, at: str, fragment: Fragment) -> None:
        needs = self._needs(fragment)
        if self._has_lost_names(key, needs):
            needs = self._followed(key)  # what it is really made of
        self._call(Follow(key, self._node(at).address, needs, whole_reach(fragment)))
        self._of[key] = at

    def _followed(self, key: str) -> tuple[Need, ...]:
        known = self._driver.read(_followed).get(key)
        return () if known is None else known.needs

    def _has_lost_names(self, key: str, needs: tuple[Need, ...]) -> bool:
        """Whether the names of what a fragment is made of mean other streams by now: two nodes may
        have given one unknown to each other."""
        known = self._followed(key)
        return bool(known) and set(known) != set(needs)

    def _needs(self, fragment: Fragment) -> tuple[Need, ...]:
        """The streams below a fragment, and their homes. Raises NodeAway."""
        me, known = self._directory.me, self._directory.defined()
        needs = set()
        for stream in base_streams(inlined(fragment)):
            entry = known.get(stream.name.lower())
            home = me if entry is None else self._node(entry.node)
            needs.add((home, stream.name if entry is None else entry.name))
        return tuple(Need(h.address, s) for h, s in sorted(needs, key=lambda n: n[1]))

    def _node(self, name: str) -> NodeInfo:
        try:
            return node_of(self._directory, name)
        except NotKnown as error:
            raise NodeAway(str(error)) from None

    def _dropped(self, key: str) -> None:
        if self.copies is not None:
            self.copies.forget(key)
        self._fragments.forget(key)
        self.unfollow(key)

    def _begin(self) -> None:
        """What was followed when this node went down, and what was not any more."""
        standing = dict(self._fragments.read())
        for key in self._driver.read(_followed).keys() - standing.keys():
            self.unfollow(key)
        for key, (stream, fragment) in standing.items():
            self._follow_on(key, stream, fragment)

    def _follow_on(self, key: str, stream: StreamDef, fragment: Fragment) -> None:
        """Whoever has to speak next is the one to be waited for."""
        at = self._mirrors.needed(stream)
        if self._mirrors.has_ended(stream):
            at = self._directory.me.name  # nobody has to speak any more
        if at == self._of.get(key) or key in self._site.lost:
            return
        if at == self._directory.me.name:
            self.unfollow(key)
            self._of[key] = at
            return
        try:
            self._follow(key, at, fragment)
        except NodeAway:  # it was forgotten meanwhile
            self._start(key, is_gone=True)

    def _run(self) -> None:
        """Say how far this node has come."""
        rounds = 0
        while not self._stop.wait(_REPORT_EVERY_S):
            rounds += 1
            with suppress(*FAILURES):
                self._addresses |= {n.name: n.address for n in self._directory.nodes()}
                for key, (stream, fragment) in self._fragments.read():
                    self._follow_on(key, stream, fragment)
                    place = self._mirrors.place(stream)
                    if place is not None:
                        self._call(Reached(key, place.instant))
                if rounds % _TIDY_EVERY == 0:
                    self._mirrors.give_back(())  # who was silent may be back

    def _call(self, request: object) -> None:
        with suppress(DriverClosed, NotInTime):
            self._driver.call(NAME, request)

    # --- what the protocol says

    def _told(self, value: object) -> None:
        match value:
            case Hold():
                self._holds.put(value)  # a tick may take its time
            case Following(key):
                if (held := self._held.get(key)) is not None:
                    held.set()
            case TakeOver(key, _, is_gone):
                self._start(key, is_gone=is_gone)

    def _hold(self) -> None:
        while not self._stop.is_set():
            with suppress(queue.Empty, *FAILURES):
                asked = self._holds.get(timeout=1)
                with self._site.gate.between_ticks():
                    self._site.engine.holds.write(asked.holder, dict(asked.streams))
                self._call(Held(asked.holder, asked.number))

    def _gone(self, node: str) -> None:
        if node in self._addresses:
            self._call(Gone(self._addresses[node]))
            return
        for key, (stream, _) in self._fragments.read():
            if self._mirrors.needed(stream) == node:
                self._start(key, is_gone=True)

    def _unserved(self, key: str) -> None:
        """A publisher that is there does not have it any more: its disk is lost. Whether for good,
        is for people to say."""
        if self._site.catalog.find(key) is not None:
            self._start(key, is_gone=False)

    # --- taking over

    def taken(self) -> list[Taken]:
        """What was taken over since this node began, the last hundred."""
        return list(self._taken)

    def _detect(self, key: str, of: str) -> Taken:
        for known in reversed(self._taken):
            if known.key == key and known.of == of and known.at is None and known.lost is None:
                return known
        found = Taken(key, of, time.time())
        self._taken.append(found)
        return found

    def _end(self, found: Taken, **how: object) -> None:
        if found in self._taken:
            self._taken[self._taken.index(found)] = msgspec.structs.replace(found, **how)

    def _start(self, key: str, *, is_gone: bool) -> None:
        with self._lock:
            if key in self._busy:
                return
            self._busy.add(key)

        def run() -> None:
            try:
                self._take_over(key, is_gone)
            except FAILURES as error:  # it will be said again
                log.warning("%s can't be computed here yet: %s", key, error)
            finally:
                with self._lock:
                    self._busy.discard(key)

        threading.Thread(target=run, name=f"takes {key} over", daemon=True).start()

    def _take_over(self, key: str, is_gone: bool) -> None:
        found = dict(self._fragments.read()).get(key)
        if found is None:
            if key not in self._held:  # nor is it about to be read
                self.unfollow(key)
            return
        stream, fragment = found
        me, at = self._directory.me.name, self._mirrors.needed(stream)
        place = self._mirrors.place(stream)
        is_over = place is not None and place.instant >= FOREVER
        if at == me or is_over or key in self._site.lost:
            self.unfollow(key)
            self._of[key] = at
            return
        since = self._fragments.last_known(stream)
        detected = self._detect(key, at)
        if whole_reach(fragment) is None and self._begun_from_copy(stream, detected):
            return
        if whole_reach(fragment) is None:
            if is_gone:
                why = "what it computed can't be rebuilt from a bounded past"
                self._lose(stream, detected, max(since + 1, BEGINNING), why)
            return
        if self._has_lost_names(key, self._needs(fragment)):
            if is_gone:
                why = "a stream that it reads is gone, or lost its name to another one"
                self._lose(stream, detected, max(since + 1, BEGINNING), why)
            return
        try:
            since = self._fragments.begin_again(stream, fragment)
        except (NodeAway, Unknown):
            raise  # a home, which may be back; or nobody reads it any more
        except SiteError as error:
            if is_gone:
                self._lose(stream, detected, since + 1, str(error))
            raise
        log.info("%s of %s is computed here from %s on", key, at, since + 1)
        self._end(detected, at=time.time(), since=since + 1)
        self._follow_on(key, stream, fragment)

    def _begun_from_copy(self, stream: StreamDef, detected: Taken) -> bool:
        """Whether what nobody could rebuild goes on here with a copy of what it remembered."""
        if self.copies is None or self.copies.find(stream.name) is None:
            return False
        since = self.copies.begin(stream.name, stream)
        log.info("%s goes on here from its copy of %s on", stream.name, since)
        self._end(detected, at=time.time(), since=since)
        self.unfollow(stream.name)
        self._of[stream.name] = self._directory.me.name
        return True

    def _lose(self, stream: StreamDef, detected: Taken, since: int, why: str) -> None:
        """From an instant on, nobody can say what a fragment would have said."""
        instant = instant_text(since, stream.resolution_us, stream.timestamp_type.is_temporal)
        of = f"node {detected.of} is gone, and {why}"
        told = f"lost from instant {instant or 'the first'} on: {of}"
        self._mirrors.lose(stream, f"{told}. Drop the query, and submit it again.")
        self._end(detected, lost=told)
        self.unfollow(stream.name)


def _followed(stack: Stack) -> dict[str, Follow]:
    found: dict[str, Follow] = stack[NAME].followed()  # type: ignore[attr-defined]
    return found
