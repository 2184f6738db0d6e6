"""A node goes: what it computes for others is computed elsewhere from an instant on, by replay.

The new place begins with all that the windows hold, at an instant that it chooses; below it, rows
still come from here. So a reader has every instant once, and this node waits until all of them have
gone over. What can't be rebuilt from a bounded past (a Rows window, an unbounded one, a row that
stays once it was there) is lossy, and keeps the node where it is.
"""

from __future__ import annotations

import time

import msgspec

from thalweg.engine.site import SiteError, WrongUse
from thalweg.engine.site.publications import reader_of
from thalweg.runtime.data.client import NotServed, Unreachable
from thalweg.runtime.data.fragments import Fragment, whole_reach
from thalweg.runtime.data.messages import Move
from thalweg.runtime.network.directory import Directory
from thalweg.runtime.network.mirrors import Mirrors
from thalweg.runtime.network.publishing import FragmentPublisher

_ASK_WITHIN_S, _GONE_WITHIN_S, _LOOK_EVERY_S = 60.0, 60.0, 0.1


class Leaving:
    def __init__(
        self, me: str, directory: Directory, mirrors: Mirrors, publisher: FragmentPublisher
    ) -> None:
        self._me, self._directory, self._mirrors = me, directory, mirrors
        self._publisher = publisher

    def move_fragments(self) -> None:
        """To the nodes that read them. Raises WrongUse with those that can't go, SiteError if a
        reader does not go over in time; what has gone over stays there."""
        found = self._publisher.published()
        lossy = [name for name, f in found.items() if whole_reach(f) is None]
        if lossy:
            told = ", ".join(f"{name} for {reader_of(name)}" for name in sorted(lossy))
            raise WrongUse(
                f"{self._me} computes what can't be rebuilt elsewhere (lossy): {told}; "
                "drop the queries that read it first (`thalweg explain --placed` tells which)"
            )
        for publication, fragment in sorted(found.items()):
            self._move(publication, fragment)
        until = time.monotonic() + _GONE_WITHIN_S
        while left := sorted(self._publisher.published()):
            if time.monotonic() > until:
                raise SiteError(f"{left[0]} is still read by {reader_of(left[0])}: try again")
            time.sleep(_LOOK_EVERY_S)

    def _move(self, publication: str, fragment: Fragment) -> None:
        reader = reader_of(publication)
        # Its other inputs stay where they are; what this node computed for itself goes along.
        asked = Move(publication, self._me, self._without_me(fragment, reader), reader)
        try:
            client = self._mirrors.connect(reader)
            try:
                client.ask(asked, within_s=_ASK_WITHIN_S)
            finally:
                client.close()
        except Unreachable as error:
            raise SiteError(
                f"{reader}, which reads {publication}, does not answer ({error}): try again"
            ) from None
        except NotServed as error:
            raise WrongUse(f"{publication} can't be computed elsewhere: {error}") from None

    def _without_me(self, fragment: Fragment, to: str) -> Fragment:
        inputs = tuple(
            msgspec.structs.replace(
                given,
                at=to if given.at == self._me else given.at,
                fragment=self._without_me(given.fragment, to),
            )
            for given in fragment.inputs
        )
        return msgspec.structs.replace(fragment, inputs=inputs)
