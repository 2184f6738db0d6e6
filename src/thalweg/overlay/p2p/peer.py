"""What the roles of one node share: settings, queries, what is known of streams, and the outbox.

The outbox sends each item until it is done: straight to an owner that is known, along the ring
where none is or where it did not answer. Items of one step for one destination are one message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.membership import Membership
from thalweg.overlay.p2p.dataflow import Dataflow, Operator, Stem
from thalweg.overlay.p2p.index_messages import Item, Place, Put, Replay
from thalweg.overlay.p2p.stems import OLDEST
from thalweg.overlay.p2p.stream_messages import Status
from thalweg.overlay.p2p.tuples import Buckets, Parts, Runs, Tup
from thalweg.overlay.protocol import Address, Effect, Send
from thalweg.overlay.routing import id_of

_ROUTED_FROM = 2  # attempts, before an owner that does not answer is looked for along the ring


@dataclass(frozen=True, slots=True)
class PeerSettings:
    copies: int = 0  # r: of each source's retained tuples
    buckets: int = 256
    instant_us: int = 1_000  # the streams' resolution
    report_every_us: int = 500_000
    retry_every_us: int = 1_000_000
    claim_every_us: int = 700_000
    room: int | None = None  # tuples of a stream that a node keeps: m(Sᵢ)
    shedding: str = OLDEST
    remember_owners: bool = True
    registered: bool = True  # sources open through their stream's register: exact queries need it
    alerts: bool = False  # producers rest while nothing can come of what they make
    capacity: int | None = None  # c_n, where it is not the room: partners come before shedding
    overloaded: float | None = None  # δ: partners are looked for beyond this share of c_n
    eager_slack: int = 2_000  # instants that a tuple of an eager query may be late

    def __post_init__(self) -> None:
        periods = (self.report_every_us, self.retry_every_us, self.claim_every_us)
        if min(*periods, self.instant_us) < 1 or self.copies < 0:
            raise ValueError("periods and instants are above 0, copies not below")
        if self.overloaded is not None and not 0 < self.overloaded <= 1:
            raise ValueError(f"overloaded beyond {self.overloaded}: a share is in (0, 1]")


@dataclass(frozen=True, slots=True)
class AtPartner:
    """Where an item goes that is with a partner."""

    partner: Address
    guest_of: str
    store_only: bool


class Out:
    """An item that is not done yet, and what waits for it."""

    __slots__ = ("guest", "item", "replay", "sent_us", "stem", "tries", "waits")

    def __init__(
        self, item: Item, stem: Stem, waits: object, replay: Replay | None, guest: AtPartner | None
    ) -> None:
        self.item = item
        self.guest = guest
        self.stem = stem
        self.waits = waits
        self.replay = replay
        self.sent_us = 0
        self.tries = 0


class Peer:
    def __init__(self, chord: Chord, membership: Membership, settings: PeerSettings) -> None:
        self.chord = chord
        self.membership = membership
        self.settings = settings
        self.buckets = Buckets(settings.buckets)
        self.dataflow = Dataflow()
        self.address: Address = ""
        self.statuses: dict[str, Status] = {}
        self.claimed_versions: dict[str, int] = {}  # of source lists, in claims that were accepted
        self.done: dict[str, int] = {}  # query -> how far it has come
        self.newest = 0  # instant that this node has seen
        self.owners: dict[int, Address] = {}  # of buckets, as last answered
        self.outs: dict[int, Out] = {}
        self.to_put_here: list[Put] = []  # what is this node's own
        self._fresh: list[Out] = []
        self._numbers = 0

    def start(self, first_number: int) -> None:
        self._numbers = first_number

    # --- knowledge ---

    def learn(self, status: Status) -> None:
        known = self.statuses.get(status.stream)
        if known is None or (status.list_version, status.frontier) >= (
            known.list_version,
            known.frontier,
        ):
            self.statuses[status.stream] = status
        for query, done in status.done.items():
            self.done[query] = max(done, self.done.get(query, 0))

    def versions(self) -> dict[str, int]:
        """Of the source lists that exact queries rest on, as far as known."""
        known, claimed = self.statuses, self.claimed_versions
        return {
            s: max(known[s].list_version, claimed.get(s, 0))
            for s in self.dataflow.exact_streams
            if s in known
        }

    def is_asleep(self, stream: str) -> bool:
        """As far as known, and unless a claim has told of a later list."""
        known = self.statuses.get(stream)
        if known is None or not known.asleep:
            return False
        return self.claimed_versions.get(stream, 0) <= known.list_version

    def is_in_vain(self, stem: Stem) -> bool:
        """Whether nothing can come of items of this SteM while some streams are asleep."""
        if not self.settings.alerts or not stem.exact:
            return False
        return all(
            self._is_dead(operator, port)
            or (not operator.queries and all(self.is_in_vain(s) for s in operator.consumers))
            for operator, port in stem.readers
        )

    def _is_dead(self, operator: Operator, port: int) -> bool:
        others = (p for i, p in enumerate(operator.ports) if i != port)
        return any(self.is_asleep(leaf.stream) for p in others for leaf in p.leaves)

    def owns(self, bucket: int) -> bool:
        chord = self.chord
        return chord.joined and chord.next_hop(self.buckets.position(bucket)) is None

    def owned(self) -> Runs:
        """The buckets that the ring gives to this node, as far as it knows."""
        chord = self.chord
        if not chord.joined:
            return ()
        before = chord.table.before
        own = chord.table.own_id
        return self.buckets.between(own if before is None else id_of(before), own)

    def frontier(self, stem: Stem) -> int:
        """Up to where nobody needs what has ended."""
        found: list[int] = []
        for q in stem.queries:
            if self.dataflow.queries[q].eager:
                found.append(self.newest - self.settings.eager_slack)
            else:
                found.append(self.done.get(q, 0))
        return min(found, default=0)

    def needs(self, tup: Tup) -> bool:
        """Whether a later owner of its bucket would need it."""
        for query in self.dataflow.queries.values():
            if query.eager:
                continue
            windows = [leaf.window for leaf in query.leaves if leaf.stream == tup.stream]
            if windows and self.done.get(query.id, 0) < tup.ts + max(windows) + 1:
                return True
        return False

    # --- the outbox ---

    def enqueue(
        self,
        stem: Stem,
        parts: Parts,
        waits: object,
        replay: Replay | None = None,
        guest: AtPartner | None = None,
        share: float = 1.0,
    ) -> int:
        self._numbers += 1
        bucket = self.buckets.of(stem.key(parts))
        item = Item(self._numbers, stem.name, bucket, parts, share)
        out = Out(item, stem, waits, replay, guest)
        self.outs[self._numbers] = out
        self._fresh.append(out)
        return self._numbers

    @property
    def has_fresh(self) -> bool:
        return bool(self._fresh)

    def forget(self, number: int) -> None:
        self.outs.pop(number, None)

    def retry(self, now_us: int) -> None:
        """Those that were not answered in time go out again, less and less often."""
        every_us = self.settings.retry_every_us
        for out in self.outs.values():
            patience_us = every_us << min(out.tries - 1, 3) if out.tries else 0
            if out.tries and now_us - out.sent_us >= patience_us:
                self._fresh.append(out)

    def flush(self, now_us: int, owner_of: Callable[[int], Address | None]) -> list[Effect]:
        """Send what is fresh. `owner_of` knows better than the cache whose word counts."""
        if not self._fresh:
            return []
        groups: dict[tuple[Address | None, Replay | None, AtPartner | None], list[Out]] = {}
        for out in self._fresh:
            if out.item.number not in self.outs:
                continue
            out.tries += 1
            out.sent_us = now_us
            target = self._target(out, owner_of)
            groups.setdefault((target, out.replay, out.guest), []).append(out)
        self._fresh = []
        effects: list[Effect] = []
        for (target, replay, guest), outs in groups.items():
            put = self._put(outs, replay, guest)
            if target == self.address:
                self.to_put_here.append(put)
            elif target is not None:
                effects.append(Send(target, put))
        return effects

    def _put(self, outs: list[Out], replay: Replay | None, guest: AtPartner | None) -> Put:
        stems = dict.fromkeys(o.item.stem for o in outs)
        found = [self.dataflow.stems[s] for s in stems if s in self.dataflow.stems]
        queries = dict.fromkeys(q for stem in found for q in stem.queries)
        exact = any(stem.exact for stem in found)
        done = {q: self.done[q] for q in queries if q in self.done}
        versions = self.versions() if exact else {}
        items = tuple([o.item for o in outs])
        put = Put(self.address, items, tuple(queries), versions, done, 0, replay)
        if guest is None:
            return put
        return replace(put, guest_of=guest.guest_of, store_only=guest.store_only)

    def _target(self, out: Out, owner_of: Callable[[int], Address | None]) -> Address | None:
        if out.guest is not None:
            return out.guest.partner
        bucket = out.item.bucket
        if self.owns(bucket):
            return self.address
        if out.tries <= _ROUTED_FROM and self.settings.remember_owners:
            known = owner_of(bucket) or self.owners.get(bucket)
            if known is not None and not self.membership.is_down(known):
                return known
        self.owners.pop(bucket, None)
        return self.next_hop(bucket)

    def next_hop(self, bucket: int) -> Address | None:
        """Along the ring; nobody while this node is in none."""
        chord = self.chord
        return chord.next_hop(self.buckets.position(bucket)) if chord.joined else None


Places = tuple[Place, ...]
