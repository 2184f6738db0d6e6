"""The sender's side of PTLB: what a fragment says with an old part goes on here for a while.

The old track is a fragment of its own, read by the receiver of the move alone. It begins at the
instant before τ over the streams that the fragment reads here, with their tuples; so nothing is
sent, and the receiver's union (`taking.py`) begins with what the fragment held then. It ends with
its reader, who leaves when no result has an old part any more; and if this node is gone before, it
goes on at its reader like every fragment (`succession.py`).
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import msgspec

from thalweg.adapt.moves.tracks import NotOnTracks, check, old_track
from thalweg.engine.shared.moving.export import movable
from thalweg.engine.shared.moving.manifest import CannotMove
from thalweg.engine.shared.state.runs import Begun
from thalweg.engine.site import Site
from thalweg.engine.site.registry import Within
from thalweg.plan.travelling import encode_plan
from thalweg.runtime.data.fragments import Fragment, fragment_publication
from thalweg.runtime.network.fragments.placed_text import placed_text
from thalweg.runtime.network.fragments.publishing import note_of


def old_fragment(fragment: Fragment, tau: int) -> Fragment:
    """As both sides know it. Raises NotOnTracks."""
    return Fragment(encode_plan(old_track(fragment.node, tau)), fragment.inputs)


class OldTracks:
    def __init__(self, site: Site, held: AbstractContextManager[object]) -> None:
        self._site, self._held = site, held

    def check(self, query: str) -> None:
        """Raises CannotMove with what to do instead."""
        try:
            check(self._site.query(query).plan)
        except NotOnTracks as error:
            raise CannotMove(str(error)) from None
        run = movable(self._site.engine, query)
        if self._site.engine.store.frontier(run.flow) is None:
            raise CannotMove("it has said nothing yet, so that nothing is old: use precopy")

    def open(self, query: str, fragment: Fragment, tau: int, receiver: str, number: int) -> str:
        """The publication of what a query that stands still at τ says with an old part; asked
        again, the same. Raises CannotMove, SiteError."""
        old = old_fragment(fragment, tau)
        name = fragment_publication(old, receiver, number)
        engine = self._site.engine
        with self._held:
            if self._site.catalog.find(name) is not None:
                return name
            run = movable(engine, query)
            plan = old_track(self._site.query(query).plan, tau)

            def before() -> None:
                taken = engine.store.take_numbers("runs", 1)
                epoch = engine.store.tick()[0] + 1
                begun = Begun(taken, epoch, tau - 1, dict(run.horizons))
                engine.store.runs.begin([(name, begun)])

            def after() -> None:
                engine.store.write_note(note_of(name), msgspec.msgpack.encode(old))

            engine.readers.keep(name)
            self._site.execute(placed_text(name, plan), within=Within(before, after))
        return name
