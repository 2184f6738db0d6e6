"""A node goes: what it computes for others is computed by its readers from an instant on.

What can be rebuilt is: the new place begins with all that the windows hold, at an instant that it
chooses; below it, rows still come from here. What can't be rebuilt from a bounded past (a Rows
window, an unbounded one, a row that stays once it was there) is lossy, and moves with its state
(`moving.py`). Either way a reader has every instant once; who waits until all of them have gone
over is `draining.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import msgspec

from thalweg.engine.site import SiteError, WrongUse
from thalweg.engine.site.publications import reader_of
from thalweg.runtime.data.client import NotServed, Unreachable
from thalweg.runtime.data.fragments import Fragment, whole_reach
from thalweg.runtime.data.messages import Move
from thalweg.runtime.network.directory import Directory
from thalweg.runtime.network.fragments.publishing import FragmentPublisher
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.moves.journal import REPLAY, MoveRecord
from thalweg.runtime.network.moves.moving import LiveMoves

_MOVED_WITHIN_S = 600.0
_ASK_WITHIN_S = 60.0


class Leaving:
    def __init__(
        self,
        me: str,
        directory: Directory,
        mirrors: Mirrors,
        publisher: FragmentPublisher,
        moving: LiveMoves | None = None,
    ) -> None:
        self._me, self._directory, self._mirrors = me, directory, mirrors
        self._publisher, self._moving = publisher, moving

    def of_others(self) -> dict[str, Fragment]:
        """What is computed here for other nodes, by publication. Raises WrongUse with what can't be
        computed elsewhere."""
        published = self._publisher.published()
        found = {name: f for name, f in published.items() if reader_of(name) != self._me}
        lossy = _lossy(found)
        if lossy and self._moving is None:
            told = ", ".join(f"{name} for {reader_of(name)}" for name in lossy)
            raise WrongUse(
                f"{self._me} computes what can't be rebuilt elsewhere (lossy): {told}; "
                "drop the queries that read it first (`thalweg explain --placed` tells which)"
            )
        return found

    def move_fragments(self, found: Mapping[str, Fragment], why: str, asked_by: str) -> None:
        """To the nodes that read them: they go over from an instant on. Raises WrongUse with what
        can't go, SiteError if a reader does not answer; what has moved stays there."""
        lossy = _lossy(found)
        self._move_with_state(lossy, why, asked_by)
        for publication, fragment in sorted(found.items()):
            if publication not in lossy:
                self._move(publication, fragment)

    def left(self, found: Iterable[str]) -> tuple[str, ...]:
        """What is still read here of these publications."""
        return tuple(sorted(self._publisher.published().keys() & set(found)))

    def _move_with_state(self, lossy: list[str], why: str, asked_by: str) -> None:
        begun: dict[str, MoveRecord] = {}
        for publication in lossy:
            assert self._moving is not None
            query = self._moving.computed_by(publication)
            if query in begun or self._moving.is_given(query):
                continue  # with another reader of it
            to = reader_of(publication)
            begun[query] = self._moving.begin(publication, to, asked_by=asked_by, why=why)
        for query, record in begun.items():
            assert self._moving is not None
            done = self._moving.await_end(record.move, _MOVED_WITHIN_S)
            if done.state != "done":
                reason = done.error or "it is still on its way"
                raise SiteError(f"{query} does not go to {done.to}: {reason}. Try again.")

    def replay_at(self, publication: str, to: str, asked_by: str, why: str) -> MoveRecord:
        """Have a fragment computed anew at another node, for all who read it. Raises WrongUse,
        SiteError."""
        assert self._moving is not None
        query = self._moving.check(publication, to)
        published = self._publisher.published()
        fragment = published[publication]
        if whole_reach(fragment) is None:
            raise WrongUse(
                f"{publication} can't be rebuilt from a bounded past (lossy): move it by precopy"
            )
        readers = [name for name in published if self._moving.computed_by(name) == query]
        record = self._moving.journal_of(query, to, REPLAY, asked_by, why)
        for reader in readers:
            self._move(reader, fragment, to)
        done = msgspec.structs.replace(record, state="done", ended=time.time())
        self._moving.journal.write(done)
        return done

    def _move(self, publication: str, fragment: Fragment, to: str | None = None) -> None:
        reader = reader_of(publication)
        to = reader if to is None else to
        # Its other inputs stay where they are; what this node computed for itself goes along.
        asked = Move(publication, self._me, self._without_me(fragment, to), to)
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


def _lossy(found: Mapping[str, Fragment]) -> list[str]:
    return sorted(name for name, f in found.items() if whole_reach(f) is None)
