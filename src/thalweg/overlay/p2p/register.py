"""One value that a majority keeps: the register of a stream's sources.

Source: multi-decree Paxos (Lamport, 2001) over a single value that is replaced whole; changes of
members by joint majorities, as in Raft (Ongaro, 2014, section 4.3). A member is an address *and a
token from its disk*, so that a node that lost its disk, and with it its promises, is no member.

Messages (sent by `streams`): Prepare, Prepared, Accept, Accepted; Outbid says that a higher ballot
is known. Invariants: a version that a majority accepted (of the members, and of those before them
while members change) is in every later leader's hands before it proposes; versions of one ballot
are proposed one after the other; a member answers only for the token that it was asked by.
"""

from __future__ import annotations

import msgspec

from thalweg.overlay.protocol import Address

Ballot = tuple[int, str]  # a number, and who leads it
NO_BALLOT: Ballot = (0, "")
Disk = str  # a node's address, "#", and what tells its disk from those that it had before


def address_of(disk: Disk) -> Address:
    return disk.partition("#")[0]


class Member(msgspec.Struct, frozen=True, array_like=True):
    address: Address
    token: str


class SourceEntry(msgspec.Struct, frozen=True):
    """A source as the register knows it; a new epoch is a new speaker for the same tuples."""

    address: Address
    epoch: int
    frontier: int  # all that was before it has taken effect
    copies: tuple[Disk, ...] = ()  # who else has its retained tuples
    horizons: dict[str, int] = {}  # query -> from when on it indexes for it
    copied: bool = False  # nothing of it counts before it has copies
    turn: int = 0  # odd: it has nothing in any window, and asks before it sends again
    end: int = -1  # of a source that was passed on: tuples from this number on don't count
    copies_at: int = 0  # no version before this one has these copies

    @property
    def is_idle(self) -> bool:
        return self.turn % 2 == 1


class Loss(msgspec.Struct, frozen=True, array_like=True):
    """A source that nobody can speak for any more: all that it retained is lost."""

    address: Address  # who spoke for it last
    queries: tuple[str, ...]  # that it took part in: younger ones know nothing of it


class StreamState(msgspec.Struct, frozen=True):
    version: int
    members: tuple[Member, ...]
    before: tuple[Member, ...] = ()  # while members change: the old ones have to agree too
    frontier: int = 0
    list_version: int = 0  # counts changes of who speaks for which source
    sources: dict[str, SourceEntry] = {}
    horizons: dict[str, int] = {}  # decided: query -> its horizon in this stream
    asleep: bool = False  # all sources are idle: what would join with it is in vain
    lost: dict[str, Loss] = {}  # sources, for ever

    def has_quorum(self, tokens: set[str]) -> bool:
        return _is_majority(self.members, tokens) and (
            not self.before or _is_majority(self.before, tokens)
        )

    @property
    def everybody(self) -> tuple[Member, ...]:
        return tuple(dict.fromkeys((*self.members, *self.before)))


def _is_majority(members: tuple[Member, ...], tokens: set[str]) -> bool:
    return 2 * sum(m.token in tokens for m in members) > len(members)


class Stored(msgspec.Struct, frozen=True):
    """What a member has on disk of one stream."""

    promised: Ballot
    accepted: Ballot
    state: StreamState


class Group:
    """One stream at one member: its acceptor, and its leader while it leads."""

    __slots__ = (
        "_agreed",
        "_prepared",
        "ballot",
        "canvassed",
        "committed",
        "hint",
        "proposal",
        "stored",
    )

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self.hint: Address | None = None  # who led last, as far as known
        self.ballot: Ballot | None = None  # of this node, while it leads or wants to
        self.committed: StreamState | None = None  # known to be: only while it leads
        self.proposal: StreamState | None = None
        self.canvassed: set[str] = set()  # tokens that were asked for their votes, for this ballot
        self._prepared: dict[str, tuple[Ballot, StreamState]] = {}
        self._agreed: set[str] = set()

    @property
    def leads(self) -> bool:
        return self.ballot is not None and self.committed is not None

    # --- acceptor ---

    def prepare(self, ballot: Ballot) -> bool:
        if ballot < self.stored.promised:
            return False
        self.stored = Stored(ballot, self.stored.accepted, self.stored.state)
        self._follow(ballot)
        return True

    def accept(self, ballot: Ballot, state: StreamState) -> bool:
        if ballot < self.stored.promised:
            return False
        newer = (ballot, state.version) >= (self.stored.accepted, self.stored.state.version)
        if newer:
            self.stored = Stored(ballot, ballot, state)
        self._follow(ballot)
        return newer

    def _follow(self, ballot: Ballot) -> None:
        self.hint = ballot[1]
        if self.ballot is not None and ballot != self.ballot:
            self.give_up()

    # --- leader ---

    def give_up(self) -> None:
        self.ballot = self.committed = self.proposal = None

    def candidate(self, address: Address) -> Ballot:
        """Its own promise comes first, and has to be on disk before anybody is asked: a ballot that
        was used once would otherwise be used again after a crash."""
        self.ballot = (self.stored.promised[0] + 1, address)
        self.stored = Stored(self.ballot, self.stored.accepted, self.stored.state)
        self.committed = self.proposal = None
        self.canvassed = set()
        self._prepared = {}
        return self.ballot

    def prepared(self, ballot: Ballot, token: str, accepted: Ballot, state: StreamState) -> bool:
        """Whether now enough have answered; the newest value must then be proposed again."""
        if ballot != self.ballot or self.committed is not None or self.proposal is not None:
            return False
        self._prepared[token] = (accepted, state)
        newest = max(self._prepared.values(), key=lambda e: (e[0], e[1].version))[1]
        if not newest.has_quorum(set(self._prepared)):
            return False
        self.propose(msgspec.structs.replace(newest, version=newest.version + 1))
        return True

    def newest_prepared(self) -> StreamState | None:
        if not self._prepared:
            return None
        return max(self._prepared.values(), key=lambda e: (e[0], e[1].version))[1]

    def propose(self, state: StreamState) -> None:
        self.proposal = state
        self._agreed = set()

    def accepted(self, ballot: Ballot, token: str, version: int) -> bool:
        """Whether the proposal is decided now."""
        if ballot != self.ballot or self.proposal is None or version != self.proposal.version:
            return False
        self._agreed.add(token)
        if not self.proposal.has_quorum(self._agreed):
            return False
        self.committed, self.proposal = self.proposal, None
        return True
