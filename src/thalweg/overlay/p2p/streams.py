"""Streams and their sources: who may speak for a stream, and how far it has come.

Source: DHTJoin stamps tuples by synchronised clocks and stops there; this is what exactness needs
beyond it. A result is final once no source can send anything older, and to leave out a source is a
decision, so it has one writer: a majority of the ring's owner of the stream's name and the two
nodes after it (`register`). They alone admit sources, above the frontier; issue the frontier, the
least of what the sources promised; decide a query's horizon, the greatest instant from which a
source indexes for it; and pass a lost source on to one who has copies of its tuples, which from
then on speaks for it, under a new epoch. Where its node and all that had copies are gone for good,
as a person has said, it is given up, and every asker hears of it. A minority decides nothing: its
streams wait. A leader that nothing new reaches asks the members whether they still follow it.

Invariants: a frontier never falls; what is admitted or indexed for a query begins at or above what
was decided before; at any version one address speaks for a source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from thalweg.overlay.chord.messages import Found, Lookup
from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Membership
from thalweg.overlay.p2p.leading import Draft
from thalweg.overlay.p2p.register import Group, Member, Stored, StreamState
from thalweg.overlay.p2p.stream_messages import (
    MESSAGES,
    Accept,
    Accepted,
    Ask,
    AskStream,
    CreateStream,
    Fence,
    FenceAnswer,
    FenceCopy,
    Fenced,
    NodesGone,
    Outbid,
    Prepare,
    Prepared,
    Status,
    StreamCreated,
    StreamGone,
    Token,
)
from thalweg.overlay.p2p.voting import Voting
from thalweg.overlay.protocol import (
    Address,
    Call,
    Deliver,
    Effect,
    Event,
    Heard,
    Init,
    Message,
    Persist,
    Receive,
    Send,
    SetTimer,
    Tell,
    TimerFired,
)
from thalweg.overlay.query_spreading import QuerySpreading
from thalweg.overlay.routing import id_of

MEMBERS = 3
_MOST_HOPS = 64
_PATIENCE = 6  # asks without an answer (not all of them get one), before the ring is asked again
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Stored).decode


@dataclass(frozen=True, slots=True)
class StreamSettings:
    issue_every_us: int = 300_000  # frontiers, where something has changed
    tend_every_us: int = 3_000_000  # who should be a member
    lost_after_us: int = 8_000_000  # a source that reports no more, and has copies
    answer_within_us: int = 1_000_000
    waits_after_us: int = 10_000_000  # without a word of who leads: its register has no majority

    def __post_init__(self) -> None:
        if min(self.issue_every_us, self.tend_every_us, self.answer_within_us) < 1:
            raise ValueError("periods and times to wait must be above 0")


class Streams:
    name = "p2p-streams"
    messages = MESSAGES
    listens_to = ("chord",)

    def __init__(
        self,
        chord: Chord,
        membership: Membership,
        spreading: QuerySpreading,
        settings: StreamSettings | None = None,
    ) -> None:
        self.settings = settings or StreamSettings()
        self._voting = Voting(self.settings.answer_within_us)
        self.groups = self._voting.groups
        self.leaders: dict[str, Address] = {}  # where the last status came from
        self._unheard: dict[str, int] = {}  # asks since the leader last said anything
        self._members: dict[str, tuple[Address, ...]] = {}  # of registers, as last told
        self._heard_us: dict[str, int] = {}
        self._waiting: set[str] = set()  # streams that this node asks for, and nobody answers
        self._chord = chord
        self._membership = membership
        self._spreading = spreading
        self._drafts: dict[str, Draft] = {}  # of the streams that this node leads
        self._creating: dict[str, dict[Address, Member | None]] = {}
        self._joining: dict[str, dict[Address, Member | None]] = {}  # who is asked for its token
        self._gone: set[Address] = set()  # for good, as somebody has said
        self._address = ""

    @property
    def token(self) -> str:
        """Names this node's disk, among the members of registers."""
        return self._voting.token

    def keeps(self) -> list[str]:
        """Streams whose register this node is a member of, as far as it knows."""
        return [s for s, g in self.groups.items() if self._voting.is_member(g.stored.state)]

    def waits_for(self, stream: str) -> tuple[Address, ...]:
        """Who kept its register when it was last heard of, if nobody speaks for it any more. Most
        of them are gone, cut off, or have lost their disks; it goes on when a majority is back.
        Who is left can't go on alone: the others may have decided something without it."""
        return self._members.get(stream, ()) if stream in self._waiting else ()

    def step(self, now_us: int, event: Event) -> list[Effect]:
        if type(event) is Receive:
            return self._receive(now_us, event.sender, event.message)
        match event:
            case TimerFired("issue"):
                again = SetTimer("issue", self.settings.issue_every_us)
                return [again, *(e for s in list(self._drafts) for e in self._issue(now_us, s))]
            case TimerFired("tend"):
                again = SetTimer("tend", self.settings.tend_every_us)
                return [again, *self._tend()]
            case TimerFired(("vote", str(stream))):
                group = self.groups.get(stream)
                if group is not None and not group.leads:
                    group.give_up()
            case Call(AskStream(stream, body)):
                heard_us = self._heard_us.setdefault(stream, now_us)
                if now_us - heard_us > self.settings.waits_after_us:
                    self._waiting.add(stream)
                return self._pass_on(now_us, Ask(stream, self._address, body))
            case Call(CreateStream(stream)):
                return [Tell("chord", Lookup(_key(stream), ("create", stream)))]
            case Call(NodesGone(addresses)):
                self._gone.update(addresses)
                return [Persist("gone", _encode(sorted(self._gone)))]
            case Call(StreamGone(stream)):
                return self._forget(stream)
            case Call(FenceAnswer(leader, fenced)):
                return [Send(leader, fenced)]
            case Heard(_, Found(("create", str(stream)), _, owners)):
                return self._ask_tokens(self._creating, stream, owners[:MEMBERS])
            case Heard(_, Found(("members", str(stream)), _, owners)):
                return self._wants_members(stream, owners[:MEMBERS])
            case Init(address, seed, persisted):
                return self._init(address, seed, persisted)
        return []

    def _init(self, address: Address, seed: int, persisted: Mapping[str, bytes]) -> list[Effect]:
        self._address = self._voting.address = address
        generator = Generator(seed)
        effects: list[Effect] = []
        for key, value in persisted.items():
            if key == "token":
                self._voting.token = value.decode()
            elif key == "gone":
                self._gone = set(msgspec.msgpack.decode(value, type=list[str]))
            else:
                self.groups[key.removeprefix("s:")] = Group(_decode(value))
        if not self.token:
            self._voting.token = f"{address}#{generator.bits():016x}"
            effects.append(Persist("token", self.token.encode()))
        return [
            *effects,
            SetTimer("issue", generator.below(self.settings.issue_every_us)),
            SetTimer("tend", generator.below(self.settings.tend_every_us)),
        ]

    # --- clients ---

    def _pass_on(self, now_us: int, ask: Ask) -> list[Effect]:
        """Towards the leader: to who led last, or along the ring, or to the next of its owners."""
        if ask.hops > _MOST_HOPS:
            return []
        onward = msgspec.structs.replace(ask, hops=ask.hops + 1)
        group = self.groups.get(ask.stream)
        if group is not None:
            if group.leads:
                return self._asked(now_us, ask)
            hint = group.hint
            gone = hint is None or hint == self._address or self._membership.is_down(hint)
            if hint is None or gone or ask.hinted:
                return self._voting.stand(ask.stream)  # where it was sent to, nobody leads
            return [Send(hint, msgspec.structs.replace(onward, hinted=True))]
        if ask.hops == 0:
            known = self.leaders.get(ask.stream)
            unheard = self._unheard[ask.stream] = self._unheard.get(ask.stream, 0) + 1
            gone = unheard > _PATIENCE or (known is not None and self._membership.is_down(known))
            if known is not None and not gone:
                return [] if known == self._address else [Send(known, onward)]
        towards = None if ask.beyond else self._chord.next_hop(_key(ask.stream))
        if towards is None and self._chord.joined:
            # The ring's owner should have the register and does not: those after it had it before.
            after = self._chord.table.successors
            towards = after[0] if after and ask.beyond <= MEMBERS else None
            onward = msgspec.structs.replace(onward, beyond=ask.beyond + 1)
        return [] if towards is None else [Send(towards, onward)]

    def _asked(self, now_us: int, ask: Ask) -> list[Effect]:
        draft = self._drafts[ask.stream]
        draft.take(now_us, ask.client, ask.body, self._spreading.table)
        if not draft.answers_now(ask.body):
            return []
        return [self._answer(ask.stream, ask.client)]

    def _answer(self, stream: str, client: Address) -> Effect:
        return Send(client, self._drafts[stream].status(stream, client, self._spreading.table))

    def _forget(self, stream: str) -> list[Effect]:
        """Everything of it; also what others say who have not heard yet."""
        self._voting.dropped.add(stream)
        self._waiting.discard(stream)
        for known in (
            self._drafts,
            self._creating,
            self._joining,
            self.leaders,
            self._unheard,
            self._members,
            self._heard_us,
        ):
            known.pop(stream, None)
        return [] if self.groups.pop(stream, None) is None else [Persist(f"s:{stream}", None)]

    # --- leading ---

    def _draft_of(self, stream: str) -> Draft | None:
        """What this node wants decided under the ballot that it leads by now.

        Between two of its own ballots others may have led and decided, and no timer need have fired
        here. So a draft ends with its ballot: the next one begins with what the votes for the new
        ballot told, and a majority's votes tell of everything that was ever decided. One that was
        carried over would propose the entries of long ago as news: holders of copies, epochs and
        ends that were replaced, and sources left out.
        """
        group, draft = self.groups.get(stream), self._drafts.get(stream)
        if group is None or draft is None or not group.leads or draft.ballot != group.ballot:
            return None
        return draft

    def _issue(self, now_us: int, stream: str) -> list[Effect]:
        """Propose what has changed since the last decision; one proposal at a time."""
        group, draft = self.groups[stream], self._draft_of(stream)
        if draft is None or group.committed is None:
            del self._drafts[stream]
            return []
        told: list[Effect] = [self._answer(stream, a) for a in draft.unaware(now_us)]
        if group.proposal is not None:
            return told + self._voting.propose(stream)  # again: messages get lost
        after_us = self.settings.lost_after_us
        lost = draft.lost(now_us, after_us, self._membership.is_down, self._gone)
        fences = [Send(heir, Fence(stream, source, epoch)) for source, epoch, heir in lost]
        effects: list[Effect] = [*told, *fences]
        proposal = draft.next_state(group.committed)
        if proposal is None:
            return effects
        group.propose(proposal)
        return effects + self._voting.propose(stream)

    def _decided(self, now_us: int, stream: str) -> list[Effect]:
        group = self.groups[stream]
        assert group.committed is not None
        assert group.ballot is not None
        draft = self._draft_of(stream)
        if draft is None:
            draft = self._drafts[stream] = Draft(group.committed, now_us, group.ballot)
        effects = [self._answer(stream, c) for c in draft.decided(group.committed)]
        if group.committed.version == 2 and stream in self._creating:
            del self._creating[stream]
            effects.append(Deliver(StreamCreated(stream, group.committed.members)))
        return effects

    # --- members ---

    def _tend(self) -> list[Effect]:
        effects: list[Effect] = []
        for stream, group in self.groups.items():
            state = group.stored.state
            if group.leads:
                effects.append(Tell("chord", Lookup(_key(stream), ("members", stream))))
                draft = self._draft_of(stream)
                if draft is not None and draft.is_quiet():
                    effects += self._voting.confirm(stream)
            elif self._voting.is_member(state) and (
                group.hint is None or self._membership.is_down(group.hint)
            ):
                effects += self._voting.stand(stream)
        return effects

    def _wants_members(self, stream: str, owners: tuple[Address, ...]) -> list[Effect]:
        group = self.groups.get(stream)
        if group is None or not group.leads or group.committed is None:
            return []
        if group.committed.before:
            return []  # a change is under way
        there = {m.address for m in group.committed.members}
        alive = [m for m in group.committed.members if not self._membership.is_down(m.address)]
        if set(owners) == there and len(alive) == len(there):
            # A member that lost its disk has another token now: ask all the same.
            return self._ask_tokens(self._joining, stream, owners)
        wanted = [a for a in owners if not self._membership.is_down(a)]
        wanted += [m.address for m in alive if m.address not in wanted]
        if len(wanted) < min(MEMBERS, len(there)):
            return []  # fewer would survive less; who seems down may come back
        return self._ask_tokens(self._joining, stream, tuple(wanted[:MEMBERS]))

    def _ask_tokens(
        self,
        asked: dict[str, dict[Address, Member | None]],
        stream: str,
        owners: tuple[Address, ...],
    ) -> list[Effect]:
        asked[stream] = dict.fromkeys(owners)
        return [Send(a, Token(stream)) for a in owners]

    def _told_token(self, stream: str, sender: Address, token: str) -> list[Effect]:
        for asked in (self._creating, self._joining):
            members = asked.get(stream)
            if members is None or sender not in members:
                continue
            members[sender] = Member(sender, token)
            found = tuple([m for m in members.values() if m is not None])
            if len(found) < len(members):
                continue
            if asked is self._creating:
                return self._create(stream, found)
            del self._joining[stream]
            now, draft = self.groups[stream].committed, self._draft_of(stream)
            if draft is None or now is None:
                return []
            if not now.before and set(found) != set(now.members):
                draft.members = found
        return []

    def _create(self, stream: str, members: tuple[Member, ...]) -> list[Effect]:
        """All of the first members have to take the first version; then one of them stands."""
        if stream in self.groups:
            return []
        state = StreamState(1, members)
        first = (1, members[0].address)
        return [Send(m.address, Accept(stream, m.token, first, state)) for m in members]

    # --- messages ---

    def _receive(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        match message:
            case Ask():
                return self._pass_on(now_us, message)
            case Status(stream):
                self.leaders[stream] = sender
                self._unheard[stream] = 0
                self._members[stream] = message.members
                self._heard_us[stream] = now_us
                self._waiting.discard(stream)
                return [Deliver(message)]
            case Token(stream, None):
                return [Send(sender, Token(stream, self.token))]
            case Token(stream, str(token)):
                return self._told_token(stream, sender, token)
            case Prepare(stream, to, ballot):
                return self._voting.prepare(sender, stream, to, ballot)
            case Prepared():
                return self._voting.prepared(message)
            case Accept(stream, to, ballot, state):
                return self._voting.accept(sender, stream, to, ballot, state)
            case Accepted(stream, token, ballot, version):
                group = self.groups.get(stream)
                if group is not None and group.accepted(ballot, token, version):
                    return self._decided(now_us, stream)
            case Outbid(stream, ballot):
                if effects := self._voting.outbid(stream, ballot):
                    self._drafts.pop(stream, None)
                return effects
            case Fence():
                return [Tell("p2p-index", FenceCopy(sender, message))]
            case Fenced(stream):
                if (draft := self._draft_of(stream)) is not None:
                    draft.fenced(sender, message)
        return []


def _key(stream: str) -> int:
    return id_of(f"stream/{stream}")
