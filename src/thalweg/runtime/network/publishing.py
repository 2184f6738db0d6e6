"""Fragments that this node computes for others: internal queries, each read by one node."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from thalweg.engine.failures import FAILURES
from thalweg.engine.shared.registering import Past
from thalweg.engine.site import Site, SiteError
from thalweg.plan.cutting import part_plan
from thalweg.plan.encoding import EncodingError
from thalweg.plan.nodes import Node
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.fragments import Fragment, fragment_publication
from thalweg.runtime.data.server import CannotPublish

log = logging.getLogger(__name__)

# Makes a query of this name stand, with all that its fragment reads.
Stand = Callable[[str, Fragment, Callable[[Node], Node]], None]


class FragmentPublisher:
    """`stand` makes queries; `tidy` gives back what none reads any more, some time later."""

    def __init__(
        self,
        site: Site,
        stand: Stand,
        stop: Callable[[str], None],
        tidy: Callable[[], None],
        held: AbstractContextManager[object],
    ) -> None:
        self._site, self._stand, self._stop, self._tidy, self._held = site, stand, stop, tidy, held

    def publish(self, fragment: Fragment, reader: str, number: int) -> tuple[str, Past]:
        """Raises CannotPublish."""
        name = fragment_publication(fragment, reader, number)
        try:
            self._site.engine.readers.keep(name)
            if self._site.catalog.find(name) is None:
                self._stand(name, fragment, part_plan)
            run = self._site.engine.roster_entry(name)
            if run is None:
                raise SiteError(f"{name} can't be read: it was given up")
            started = BEGINNING if run.started is None else run.started
            if fragment.from_beginning and started > BEGINNING:
                raise SiteError(
                    "its streams have begun, and what this part reads must be known from their "
                    "beginning: submit again, and the query is cut elsewhere"
                )
        except (SiteError, EncodingError, ValueError) as error:
            self._take_back(name)
            raise CannotPublish(str(error)) from None
        except BaseException:
            self._take_back(name)
            raise
        return name, Past(started)

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
