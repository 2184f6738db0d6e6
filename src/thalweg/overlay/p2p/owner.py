"""The owner of buckets: SteMs and MJoins, and when its acknowledgements may be given.

Source: DHTJoin 4.3.3.1 and 4.3.3.2. Beyond it, who owns a bucket changes while nodes come and go.
A new owner *claims* its buckets from all who speak for sources of streams that exact queries read
(`source`): they promise to count on it alone, and send what they retain. Then, level by level, they
replay what intermediate results are made of. What arrives is stored and joined at once; it is
acknowledged when the claim is complete and all that came of it is done: results with the asker,
intermediate results with their owners.

Invariants: an acknowledgement is only given under a claim that every known speaker has promised
with one number, and names each bucket where something of the item went. Repeating anything changes
nothing: SteMs are sets, and askers know what they have.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from thalweg.overlay.p2p.dataflow import Operator, Stem
from thalweg.overlay.p2p.index_messages import (
    Claim,
    Done,
    Item,
    Place,
    Promised,
    Put,
    Refused,
    Replay,
    Unknown,
)
from thalweg.overlay.p2p.mjoin import probe
from thalweg.overlay.p2p.partners import Partners
from thalweg.overlay.p2p.peer import Peer
from thalweg.overlay.p2p.result_messages import SendRows
from thalweg.overlay.p2p.stems import Stems
from thalweg.overlay.p2p.stream_messages import AskStream, Look
from thalweg.overlay.p2p.tuples import Parts, Runs, Value, ids_of, inside, without
from thalweg.overlay.protocol import Address, Effect, Send, Tell
from thalweg.overlay.query_table import QueryTable

Speaker = tuple[str, int]  # a source's id and epoch

_IDLE_US = 5_000_000


@dataclass(slots=True, eq=False)
class Holding:
    """Buckets that were claimed together."""

    runs: Runs
    life: str
    number: int = 1
    level: int = 0  # levels below it are complete
    versions: dict[str, int] = field(default_factory=dict)
    promised: dict[int, set[Speaker]] = field(default_factory=dict)  # by level
    had: dict[int, set[Speaker]] = field(default_factory=dict)  # answers that this life ever got
    asked_us: int = -(1 << 62)
    held: list[Task] = field(default_factory=list)  # ready, but for the claim


@dataclass(slots=True, eq=False)
class Task:
    """An item at work: acknowledged when nothing that came of it is open."""

    origin: Address
    item: Item
    replay: Replay | None
    exact: bool
    needs: int | None = None  # levels that have to be complete; None: all
    hosted: bool = False  # for another owner
    dead: bool = False  # its bucket went to another owner
    open: set[object] = field(default_factory=set)
    places: dict[Place, None] = field(default_factory=dict)


class Owner:
    def __init__(self, peer: Peer, table: QueryTable) -> None:
        self.stems = Stems(peer.settings.room, peer.settings.shedding)
        self.partners = Partners(peer, self.stems)
        self.holdings: list[Holding] = []
        self.tasks: dict[tuple[Address, int], Task] = {}
        self.results = 0
        self._owned: Runs = ()
        self._idle_since_us = 0
        self._peer = peer
        self._table = table
        self._lives = 0
        self._life_prefix = ""
        self._tokens = 0
        self._token_tasks: dict[int, Task] = {}  # results under way
        self._rows: list[tuple[int, str, Operator, tuple[Parts, ...]]] = []
        self._done: dict[Address, list[tuple[int, tuple[Place, ...]]]] = {}
        self._looked_us: dict[str, int] = {}

    def start(self, prefix: str, first_token: int) -> None:
        self._life_prefix = prefix
        self.partners.start(prefix)
        self._tokens = first_token

    # --- items ---

    def put(self, now_us: int, put: Put) -> list[Effect]:
        peer = self._peer
        if put.guest_of:
            return self._host(now_us, put)
        mine = [i for i in put.items if peer.owns(i.bucket)]
        effects = self._forward(put) if len(mine) < len(put.items) else []
        if not mine:
            return effects
        unknown = tuple([q for q in put.queries if self._table.get(q) is None])
        if unknown:
            return [*effects, Send(put.origin, Unknown(unknown))]
        behind = [s for s, v in put.versions.items() if self._version(s) < v]
        if behind:
            # The origin knows of sources that this node has not heard of; it sends again.
            return [*effects, *(e for s in behind for e in self.look(now_us, s))]
        for query, done in put.done.items():
            peer.done[query] = max(done, peer.done.get(query, 0))
        for item in mine:
            self._take(item, put)
        return effects

    def _host(self, now_us: int, put: Put) -> list[Effect]:
        """A partner's part: store, and join with what the same owner has brought."""
        unknown = tuple([q for q in put.queries if self._table.get(q) is None])
        if unknown:
            return [Send(put.origin, Unknown(unknown))]
        for query, done in put.done.items():
            self._peer.done[query] = max(done, self._peer.done.get(query, 0))
        stems = self.partners.guest(put.guest_of)
        for item in put.items:
            stem = self._peer.dataflow.stems.get(item.stem)
            key = (put.origin, item.number)
            if key in self.tasks:
                continue
            task = Task(put.origin, item, put.replay, False, hosted=True)
            if stem is not None and stem.readers:
                self._peer.newest = max(self._peer.newest, *[p.ts for p in item.parts])
                stems.purge(self._peer.frontier(stem), (stem.name,))
                stems.add(stem.name, stem.key(item.parts), item.parts, stem.end(item.parts))
                if not put.store_only:
                    self.tasks[key] = task
                    self._join(task, stems)
            if not task.open:
                self._acknowledge(task, None)
        return self.partners.complain(now_us, put.guest_of, put.origin)

    def _version(self, stream: str) -> int:
        known = self._peer.statuses.get(stream)
        return -1 if known is None else known.list_version

    def _forward(self, put: Put) -> list[Effect]:
        """What is not this node's goes on along the ring."""
        if put.hops > 64:
            return []
        groups: dict[Address, list[Item]] = {}
        for item in put.items:
            if not self._peer.owns(item.bucket):
                hop = self._peer.next_hop(item.bucket)
                if hop is not None:
                    groups.setdefault(hop, []).append(item)
        return [
            Send(
                hop,
                Put(
                    put.origin,
                    tuple(items),
                    put.queries,
                    put.versions,
                    put.done,
                    put.hops + 1,
                    put.replay,
                ),
            )
            for hop, items in groups.items()
        ]

    def _take(self, item: Item, put: Put) -> None:
        stem = self._peer.dataflow.stems.get(item.stem)
        key = (put.origin, item.number)
        if key in self.tasks:
            return  # at work already
        task = Task(put.origin, item, put.replay, False)
        if stem is None or not stem.readers:
            self._acknowledge(task, self.holding_of(item.bucket))  # of a query that was dropped
            return
        task.exact = stem.exact
        if put.replay is not None:
            # In the SteMs that it is to fill, a replay ends; on the way it needs what is below.
            task.needs = 0 if stem.level >= put.replay.level else put.replay.level
        self.tasks[key] = task
        self._peer.newest = max(self._peer.newest, *[p.ts for p in item.parts])
        self.stems.purge(self._peer.frontier(stem), (stem.name,))
        self.store(stem, stem.key(item.parts), item.parts)
        self.go_on(task)

    def go_on(self, task: Task) -> None:
        """Join it if all that it has to meet is here; what comes later will meet it."""
        if task.dead:
            return
        if task.exact:
            holding = self.holding_of(task.item.bucket) or self._begin_holding(task.item.bucket)
            if holding is None:
                self.tasks.pop((task.origin, task.item.number), None)  # not ours: it comes back
                return
            if not self._is_enough(task, holding):
                holding.held.append(task)
                return
        stem = self._peer.dataflow.stems.get(task.item.stem)
        delegation = None if stem is None else self.partners.of(stem.key(task.item.parts))
        if delegation is None or stem is None:
            self._join(task, self.stems)
        elif delegation.arriving:
            delegation.waiting.append(task)
            return
        else:
            self.partners.send(delegation, stem, task)
        if not task.open:
            self._ready(task)

    def _join(self, task: Task, stems: Stems) -> None:
        stem = self._peer.dataflow.stems.get(task.item.stem)
        replay, parts = task.replay, task.item.parts
        if stem is None or (replay is not None and stem.level >= replay.level):
            return
        value = stem.key(parts)
        for operator, port in stem.readers:
            outputs = probe(operator, port, parts, value, stems.get)
            if outputs:
                stems.matched(stem.name, value, len(outputs))
                self._emit(operator, outputs, task, replay)

    def store(self, stem: Stem, value: Value, parts: Parts, *, joins: bool = True) -> None:
        """Here, or at a partner; what is to be joined there goes there once, when it is joined."""
        delegation = self.partners.of(value)
        if delegation is not None:
            if not joins:
                self.partners.store(delegation, stem, parts)
            return
        self.stems.add(stem.name, value, parts, stem.end(parts))

    def _emit(
        self, operator: Operator, outputs: list[Parts], task: Task, replay: Replay | None
    ) -> None:
        for stem in operator.consumers:
            if replay is not None and stem.level > replay.level:
                continue
            if replay is None and self._peer.is_in_vain(stem):
                continue  # a replay makes it again, if it is needed after all
            for parts in outputs:
                if stem.key(parts) is None:
                    continue
                if replay is not None and stem.level == replay.level:
                    bucket = self._peer.buckets.of(stem.key(parts))
                    if not inside(bucket, replay.runs):
                        continue
                number = self._peer.enqueue(stem, parts, ("task", task), replay)
                task.open.add(number)
        if replay is None:
            self.results += len(outputs) * len(operator.queries)
            for query in operator.queries:
                self._tokens += 1
                task.open.add(("rows", self._tokens))
                self._token_tasks[self._tokens] = task
                self._rows.append((self._tokens, query, operator, tuple(outputs)))

    def flush_rows(self) -> list[Effect]:
        """Results of this step, to those who asked."""
        effects: list[Effect] = []
        for token, query_id, operator, outputs in self._rows:
            query = self._peer.dataflow.queries[query_id]
            share = self.stems.completeness(p.stem for p in operator.ports)
            effects.append(
                Tell("p2p-results", SendRows(token, query.asker, query_id, outputs, share))
            )
        self._rows = []
        return effects

    # --- acknowledgements ---

    def rows_done(self, token: int) -> None:
        task = self._token_tasks.pop(token, None)
        if task is not None:
            task.open.discard(("rows", token))
            if not task.open:
                self._ready(task)

    def item_done(self, task: Task, number: int, places: tuple[Place, ...]) -> None:
        task.places.update(dict.fromkeys(places))
        task.open.discard(number)
        if not task.open:
            self._ready(task)

    def _ready(self, task: Task) -> None:
        if task.dead:
            return
        if not task.exact:
            self._acknowledge(task, None)
            return
        holding = self.holding_of(task.item.bucket)
        if holding is not None and self._is_enough(task, holding):
            self._acknowledge(task, holding)
        elif holding is not None:
            holding.held.append(task)  # sources have come since: it may have more to meet

    def _is_enough(self, task: Task, holding: Holding) -> bool:
        return self.is_complete(holding) if task.needs is None else holding.level >= task.needs

    def is_complete(self, holding: Holding) -> bool:
        return holding.level >= self._peer.dataflow.levels and not self._is_outdated(holding)

    def _is_outdated(self, holding: Holding) -> bool:
        streams = self._peer.dataflow.exact_streams
        return any(holding.versions.get(s, -1) < self._version(s) for s in streams) or any(
            s not in holding.versions for s in streams
        )

    def _acknowledge(self, task: Task, holding: Holding | None) -> None:
        self.tasks.pop((task.origin, task.item.number), None)
        if holding is not None:
            task.places[task.item.bucket, holding.life] = None
        self._done.setdefault(task.origin, []).append((task.item.number, tuple(task.places)))

    @property
    def has_done(self) -> bool:
        return bool(self._done)

    def flush_done(self) -> list[tuple[Address, Done]]:
        done, self._done = self._done, {}
        return [(origin, Done(tuple(items))) for origin, items in done.items()]

    # --- claims ---

    def holding_of(self, bucket: int) -> Holding | None:
        for holding in self.holdings:
            if inside(bucket, holding.runs):
                return holding
        return None

    def _begin_holding(self, bucket: int) -> Holding | None:
        """Of all that the ring gives this node and that it does not hold yet."""
        if not self._peer.owns(bucket):
            return None
        held = [r for h in self.holdings for r in h.runs]
        self._lives += 1
        runs = without(self._peer.owned(), held)
        holding = Holding(runs, f"{self._life_prefix}{self._lives}")
        self.holdings.append(holding)
        return holding

    def tend(self, now_us: int) -> list[Effect]:
        """Let go of what is another's, and press on with claims."""
        self._let_go()
        self._replace_failed()
        self.purge()
        self.partners.purge()
        effects = [*self.partners.tend(now_us), *self._look_if_idle(now_us)]
        if self._peer.dataflow.exact_streams:
            for holding in self.holdings:
                effects += self.press(now_us, holding)
        return effects

    def press(self, now_us: int, holding: Holding) -> list[Effect]:
        """Ask who has not promised; go up a level where all have."""
        effects: list[Effect] = []
        streams = self._peer.dataflow.exact_streams
        unheard = [s for s in streams if s not in self._peer.statuses]
        if unheard:
            return [e for s in unheard for e in self.look(now_us, s)]
        if self._is_outdated(holding):
            # Everybody has to confirm, so that nobody promises one who knows fewer sources.
            holding.versions = self._peer.versions()
            holding.promised.clear()
            if self._peer.settings.alerts:
                holding.had.clear()  # a stream may have woken: what rested is to be made again
            holding.level = 0
            holding.asked_us = -(1 << 62)
        required = self._required()
        while holding.level < self._peer.dataflow.levels:
            missing = set(required) - holding.promised.get(holding.level, set())
            if not missing and any(d.arriving for d in self.partners.delegations):
                return effects  # what was promised is on its way to a partner
            if missing:
                return effects + self._ask(now_us, holding, {required[m] for m in missing})
            holding.level += 1
            holding.asked_us = -(1 << 62)
            self._release(holding)  # replays for others may have waited for this level
        self._release(holding)
        return effects

    def _release(self, holding: Holding) -> None:
        held, holding.held = holding.held, []
        for task in held:
            if not task.dead:
                self.go_on(task)

    def _required(self) -> dict[Speaker, Address]:
        found: dict[Speaker, Address] = {}
        for stream in self._peer.dataflow.exact_streams:
            for source, epoch, address in self._peer.statuses[stream].sources:
                found[source, epoch] = address
        return found

    def _ask(self, now_us: int, holding: Holding, speakers: set[Address]) -> list[Effect]:
        if now_us - holding.asked_us < self._peer.settings.claim_every_us:
            return []
        first_time = holding.asked_us < -(1 << 60)
        holding.asked_us = now_us
        effects: list[Effect] = []
        had = tuple(sorted(holding.had.get(holding.level, ())))
        claim = Claim(
            holding.runs, holding.number, holding.life, holding.level, holding.versions, had
        )
        effects += [Send(address, claim) for address in sorted(speakers)]
        if not first_time:
            # Who does not answer may have been replaced.
            for stream in self._peer.dataflow.exact_streams:
                effects += self.look(now_us, stream)
        return effects

    def promised(self, now_us: int, message: Promised) -> list[Effect]:
        holding = next((h for h in self.holdings if h.life == message.life), None)
        if holding is None or holding.number != message.number:
            return []
        if not _covers(message.runs, holding.runs) or message.versions != holding.versions:
            return []
        for item in message.items:
            stem = self._peer.dataflow.stems.get(item.stem)
            if stem is not None and stem.readers and inside(item.bucket, holding.runs):
                self.store(stem, stem.key(item.parts), item.parts, joins=False)
        holding.promised.setdefault(message.level, set()).update(message.sources)
        holding.had.setdefault(message.level, set()).update(message.sources)
        return self.press(now_us, holding)

    def refused(self, now_us: int, message: Refused) -> list[Effect]:
        holding = next((h for h in self.holdings if h.life == message.life), None)
        if holding is None:
            return []
        effects: list[Effect] = []
        for stream, version in message.versions.items():
            if self._version(stream) < version:
                effects += self.look(now_us, stream)
        if message.number >= holding.number:
            # Another has claimed them. The ring says who is right; if it is this node, outbid.
            holding.number = message.number + 1
            holding.promised.clear()
            holding.level = 0
        elif message.number == 0:
            holding.promised.clear()  # the sender knows of no promise: ask all again
            holding.level = 0
        return effects

    def _look_if_idle(self, now_us: int) -> list[Effect]:
        """What is stored can only be purged by one who hears how far the streams are."""
        if not self.stems.size:
            self._idle_since_us = now_us
        if now_us - self._idle_since_us < _IDLE_US:
            return []
        self._idle_since_us = now_us
        return [e for s in self._peer.dataflow.exact_streams for e in self.look(now_us, s)]

    def look(self, now_us: int, stream: str) -> list[Effect]:
        every_us = self._peer.settings.claim_every_us
        if now_us - self._looked_us.get(stream, -every_us) < every_us:
            return []
        self._looked_us[stream] = now_us
        return [Tell("p2p-streams", AskStream(stream, Look()))]

    def _let_go(self) -> None:
        """Of buckets that the ring gives to others: they claim them, and build them anew."""
        owned = self._peer.owned()
        if owned == self._owned:
            return
        self._owned = owned
        kept = []
        for holding in self.holdings:
            gone = without(holding.runs, owned)
            if gone:
                self._drop(gone)
                holding.runs = without(holding.runs, gone)
            if holding.runs:
                kept.append(holding)
        self.holdings = kept

    def _drop(self, runs: Runs) -> None:
        bucket_of = self._peer.buckets.of
        gone = [
            (stem, value, ids_of(parts))
            for stem, value, parts in self.stems.entries()
            if inside(bucket_of(value), runs)
        ]
        self.stems.drop_where(gone)
        for key, task in list(self.tasks.items()):
            if not task.hosted and inside(task.item.bucket, runs):
                del self.tasks[key]
                task.dead = True

    def _replace_failed(self) -> None:
        """What was with a partner that is gone is rebuilt: a new life for all that is held."""
        if not self.partners.failed():
            return
        self.partners.delegations.clear()
        for holding in self.holdings:
            self._drop(holding.runs)
        self.holdings = []

    def purge(self) -> None:
        for name in self.stems.names():
            stem = self._peer.dataflow.stems.get(name)
            self.stems.purge(FOREVER if stem is None else self._peer.frontier(stem), (name,))


FOREVER = 1 << 62


def _covers(wide: Runs, narrow: Runs) -> bool:
    return all(any(a <= c and d <= b for a, b in wide) for c, d in narrow)
