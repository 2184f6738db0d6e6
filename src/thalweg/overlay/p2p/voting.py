"""Votes over registers, as messages: who leads a stream, and what is proposed to whom.

What a member keeps, and when something is decided, is `register`'s; here it is said to the others.
"""

from __future__ import annotations

import msgspec

from thalweg.overlay.p2p.register import NO_BALLOT, Group, Stored, StreamState
from thalweg.overlay.p2p.stream_messages import Accept, Accepted, Outbid, Prepare, Prepared
from thalweg.overlay.protocol import Address, Effect, Persist, Send, SetTimer

_encode = msgspec.msgpack.Encoder().encode


class Voting:
    def __init__(self, answer_within_us: int) -> None:
        self.groups: dict[str, Group] = {}
        self.dropped: set[str] = set()  # streams that nobody brings back
        self.answer_within_us = answer_within_us
        self.address: Address = ""
        self.token = ""

    # --- leader ---

    def stand(self, stream: str) -> list[Effect]:
        """For leader; not while a vote is under way."""
        group = self.groups[stream]
        if group.ballot is not None or not self.is_member(group.stored.state):
            return []
        ballot = group.candidate(self.address)
        effects = [self._persist(stream), SetTimer(("vote", stream), self.answer_within_us)]
        return effects + self._canvass(stream, ballot, group.stored.state)

    def _canvass(self, stream: str, ballot: tuple[int, str], state: StreamState) -> list[Effect]:
        """Ask for votes, each member once: their answers may name more to ask."""
        asked = self.groups[stream].canvassed
        fresh = [m for m in state.everybody if m.token not in asked]
        asked.update(m.token for m in fresh)
        return [Send(m.address, Prepare(stream, m.token, ballot)) for m in fresh]

    def is_member(self, state: StreamState) -> bool:
        return any(m.token == self.token for m in state.everybody)

    def propose(self, stream: str) -> list[Effect]:
        group = self.groups[stream]
        assert group.proposal is not None
        assert group.ballot is not None
        return self._say(stream, group.ballot, group.proposal)

    def confirm(self, stream: str) -> list[Effect]:
        """Say again what is decided: who is not followed any more hears so. A leader that was cut
        off, or is no member, is not told by those who have replaced it."""
        group = self.groups[stream]
        if group.ballot is None or group.committed is None or group.proposal is not None:
            return []
        return self._say(stream, group.ballot, group.committed)

    def _say(self, stream: str, ballot: tuple[int, str], state: StreamState) -> list[Effect]:
        return [Send(m.address, Accept(stream, m.token, ballot, state)) for m in state.everybody]

    def prepare(
        self, sender: Address, stream: str, to: str, ballot: tuple[int, str]
    ) -> list[Effect]:
        group = self.groups.get(stream)
        if group is None or to != self.token:
            return []
        if not group.prepare(ballot):
            return [Send(sender, Outbid(stream, group.stored.promised))]
        stored = group.stored
        answer = Prepared(stream, self.token, ballot, stored.accepted, stored.state)
        return [self._persist(stream), Send(sender, answer)]

    def prepared(self, message: Prepared) -> list[Effect]:
        stream = message.stream
        group = self.groups.get(stream)
        if group is None or group.ballot is None:
            return []
        if group.prepared(message.ballot, message.token, message.accepted, message.state):
            return self.propose(stream)
        newest = group.newest_prepared()
        if newest is not None and group.proposal is None and not group.leads:
            known = {m.token for m in group.stored.state.everybody}
            if not known.issuperset(m.token for m in newest.everybody):
                # Members have changed since this node last heard: the new ones have a say.
                return self._canvass(stream, message.ballot, newest)
        return []

    def accept(
        self, sender: Address, stream: str, to: str, ballot: tuple[int, str], state: StreamState
    ) -> list[Effect]:
        if to != self.token:
            return []
        group = self.groups.get(stream)
        if group is None:
            if not self.is_member(state) or stream in self.dropped:
                return []
            group = self.groups[stream] = Group(Stored(NO_BALLOT, NO_BALLOT, state))
        if not group.accept(ballot, state):
            return [Send(sender, Outbid(stream, group.stored.promised))]
        effects = [
            self._persist(stream),
            Send(sender, Accepted(stream, self.token, ballot, state.version)),
        ]
        if state.version == 1 and ballot[1] == self.address:
            effects += self.stand(stream)
        return effects

    def outbid(self, stream: str, ballot: tuple[int, str]) -> list[Effect]:
        group = self.groups.get(stream)
        if group is None or group.ballot is None or ballot <= group.ballot:
            return []
        group.give_up()
        group.hint = ballot[1] if ballot[1] != self.address else None
        stored = group.stored
        if ballot > stored.promised:
            group.stored = Stored(ballot, stored.accepted, stored.state)
        return [self._persist(stream)]

    def _persist(self, stream: str) -> Effect:
        return Persist(f"s:{stream}", _encode(self.groups[stream].stored))
