"""Fragments that this node computes for others: internal queries, each read by one node."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from thalweg.engine.failures import FAILURES
from thalweg.engine.shared.registering import Past
from thalweg.engine.shared.results.present import NotKept, frontier_of
from thalweg.engine.site import Site, SiteError
from thalweg.engine.site.publications import Publications, reader_of
from thalweg.plan.cutting import part_plan
from thalweg.plan.encoding import EncodingError
from thalweg.plan.nodes import Node
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.fragments import (
    Fragment,
    digest,
    digest_of,
    fragment_publication,
    is_fragment,
    whole_reach,
)
from thalweg.runtime.data.messages import Move
from thalweg.runtime.data.server import CannotPublish
from thalweg.runtime.network.fragments.fragments import Fragments
from thalweg.runtime.network.fragments.handing import epoch_of
from thalweg.runtime.network.mirrors.mirrored import NodeAway

log = logging.getLogger(__name__)

# Makes a query of this name stand, with all that its fragment reads, of all the past it asks for;
# from an instant of the past on, if one is given.
Stand = Callable[[str, Fragment, Callable[[Node], Node], bool, int | None], None]


class FragmentPublisher:
    """`stand` makes queries; `tidy` gives back what none reads any more, some time later."""

    def __init__(
        self,
        site: Site,
        stand: Stand,
        stop: Callable[[str], None],
        tidy: Callable[[], None],
        held: AbstractContextManager[object],
        fragments: Fragments,
        publications: Publications,
        me: str,
        shares: bool = True,
    ) -> None:
        """Not `shares`: each reader has a fragment to itself."""
        self._me, self._shares = me, shares
        self._site, self._stand, self._stop, self._tidy, self._held = site, stand, stop, tidy, held
        self._fragments, self._publications = fragments, publications
        for query in site.catalog.queries():
            self._keep_alone(query.name)

    def _keep_alone(self, name: str) -> None:
        """What this node computes for itself is a fragment so that it can move: it has its state
        for itself."""
        if is_fragment(name) and reader_of(name) == self._me:
            self._site.engine.grouping.pinned.add(name)

    def publish(
        self,
        fragment: Fragment,
        reader: str,
        number: int,
        complete: bool = False,
        since: int | None = None,
    ) -> tuple[str, Past]:
        """Raises CannotPublish."""
        name = fragment_publication(fragment, reader, number)
        try:
            known = self._publications.sharers.find(name)
            if known.of != name:  # asked again
                return name, Past(BEGINNING if known.first is None else known.first)
            if self._site.catalog.find(name) is None:
                if since is None and (shared := self._shared(fragment, name)) is not None:
                    return name, shared
                self._site.engine.readers.keep(name)
                self._keep_alone(name)
                note = msgspec.msgpack.encode(fragment)
                self._site.engine.store.write_note(note_of(name), note)
                self._stand(name, fragment, part_plan, complete, since)
            self._site.engine.readers.keep(name)
            run = self._site.engine.roster_entry(name)
            if run is None:
                raise SiteError(f"{name} can't be read: it was given up")
            started = BEGINNING if run.started is None else run.started
            if fragment.from_beginning and since is None and started > BEGINNING:
                raise SiteError(
                    "its streams have begun, and what this part reads must be known from their "
                    "beginning: submit again, and the query is cut elsewhere"
                )
            if complete and run.gaps:
                raise SiteError(f"of {run.gaps[0].stream}, not all is kept that its windows hold")
        except (SiteError, EncodingError, ValueError) as error:
            self._take_back(name)
            raise CannotPublish(str(error), later=isinstance(error, NodeAway)) from None
        except BaseException:
            self._take_back(name)
            raise
        return name, Past(started)

    def _shared(self, fragment: Fragment, reader: str) -> Past | None:
        """If an equal fragment is computed here for another reader, and says what one would say
        that begins now: that one, for both."""
        if not self._shares:
            return None  # another engine does not tell since when its windows are filled
        if fragment.node.is_stream:
            return None  # what it holds at its start is new to it
        wanted, reaches = digest(fragment), whole_reach(fragment)
        for query in self._site.catalog.queries():
            if digest_of(query.name) != wanted or epoch_of(query.name):
                continue  # one that has moved does not know what it held before
            run = self._site.engine.roster_entry(query.name)
            if run is None:
                continue
            reached = frontier_of(self._site.engine, query.name)
            if reached <= BEGINNING:
                if run.started is not None:
                    continue  # it began in the middle, and has not said what it holds
            elif reaches is None or fragment.from_beginning:
                continue  # what it says depends on where it began
            elif any(gap.until >= reached for gap in run.gaps):
                continue  # its windows are not filled yet
            try:
                first = self._publications.share(query.name, reader)
            except (SiteError, NotKept):
                continue
            return Past(BEGINNING if first is None else first)
        return None

    def move(self, asked: Move) -> None:
        """Raises CannotPublish."""
        try:
            self._fragments.move(asked)
        except SiteError as error:
            raise CannotPublish(str(error), later=isinstance(error, NodeAway)) from None

    def published(self) -> dict[str, Fragment]:
        """What is computed here for others, by publication."""
        found = {}
        for query in self._site.catalog.queries():
            note = self._site.engine.store.note(note_of(query.name))
            if is_fragment(query.name) and note is not None:
                for reader in self._publications.sharers.of(query.name):
                    found[reader] = msgspec.msgpack.decode(note, type=Fragment)
        return found

    def _take_back(self, name: str) -> None:
        try:
            self._stop(name)
        except FAILURES as error:
            log.warning("%s could not be taken back: %s", name, error)
        self.closed()

    def closed(self) -> None:
        """Not on the caller's thread: who closes a fragment may itself have been asked to, and
        nodes that wait for each other would wait for ever."""

        def run() -> None:
            try:
                with self._held:
                    self._tidy()
            except FAILURES as error:  # at the next time, then
                log.warning("what nothing reads any more could not be given back: %s", error)

        threading.Thread(target=run, name="tidy", daemon=True).start()


def note_of(publication: str) -> str:
    """Under which a fragment is kept as it was asked for."""
    return f"fragment/{publication}"
