"""The owner of buckets: SteMs and MJoins, and when its acknowledgements may be given.

Source: DHTJoin 4.3.3.1 and 4.3.3.2. Beyond it, who owns a bucket changes while nodes come and go,
and a new owner *claims* its buckets first (`claims`). What arrives is stored at once, joined when
the claim is complete, and acknowledged when all that came of it is done: results with the asker,
intermediate results with their owners.

Invariants: an acknowledgement is only given under a claim that every known speaker has promised
with one number, and names each bucket where something of the item went. Repeating anything changes
nothing: SteMs are sets, and askers know what they have.
"""

from __future__ import annotations

from thalweg.overlay.p2p.claims import Claims, Holding
from thalweg.overlay.p2p.dataflow import Operator, Stem
from thalweg.overlay.p2p.found_rows import FoundRows, Task
from thalweg.overlay.p2p.index_messages import (
    Done,
    Item,
    Place,
    Put,
    Replay,
    Unknown,
)
from thalweg.overlay.p2p.mjoin import probe
from thalweg.overlay.p2p.partners import Partners
from thalweg.overlay.p2p.peer import Peer
from thalweg.overlay.p2p.stems import Stems
from thalweg.overlay.p2p.tuples import Parts, Runs, ids_of, inside, without
from thalweg.overlay.protocol import Address, Effect, Send
from thalweg.overlay.query_table import QueryTable

_IDLE_US = 5_000_000


class Owner:
    def __init__(self, peer: Peer, table: QueryTable) -> None:
        self.stems = Stems(peer.settings.room, peer.settings.shedding)
        self.partners = Partners(peer, self.stems)
        self.claims = Claims(peer, self.partners, self._store_only, self.go_on)
        self.tasks: dict[tuple[Address, int], Task] = {}
        self.found = FoundRows()
        self.results = 0
        self._idle_since_us = 0
        self._peer = peer
        self._table = table
        # To whom, and whether as partner.
        self._done: dict[tuple[Address, bool], list[tuple[int, tuple[Place, ...]]]] = {}

    @property
    def stored(self) -> int:
        """Tuples here, as owner and as partner."""
        return self.stems.size + sum(s.size for s in self.partners.guests.values())

    @property
    def shed(self) -> int:
        """Tuples that there was no room for, ever."""
        return self.stems.shed + sum(s.shed for s in self.partners.guests.values())

    def start(self, prefix: str, first_token: int) -> None:
        self.claims.start(prefix)
        self.partners.start(prefix)
        self.found.start(first_token)

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
        behind = [s for s, v in put.versions.items() if self.claims.version(s) < v]
        if behind:
            # The origin knows of sources that this node has not heard of; it sends again.
            return [*effects, *(e for s in behind for e in self.claims.look(now_us, s))]
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
                value, end = stem.key(item.parts), stem.end(item.parts)
                stems.add(stem.name, value, item.parts, end, item.share)
                if not put.store_only:
                    self.tasks[key] = task
                    self._join(task, stems)
            if not task.open:
                self._acknowledge(task, None)
        return self.partners.complain(now_us, put.guest_of, put.origin)

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
            self._acknowledge(
                task, self.claims.holding_of(item.bucket)
            )  # of a query that was dropped
            return
        task.exact = stem.exact
        if put.replay is not None:
            # In the SteMs that it is to fill, a replay ends; on the way it needs what is below.
            task.needs = 0 if stem.level >= put.replay.level else put.replay.level
        self.tasks[key] = task
        self._peer.newest = max(self._peer.newest, *[p.ts for p in item.parts])
        self.stems.purge(self._peer.frontier(stem), (stem.name,))
        self._store(stem, item.parts, item.share)
        self.go_on(task)

    def go_on(self, task: Task) -> None:
        """Join it if all that it has to meet is here; what comes later will meet it."""
        if task.dead:
            return
        if task.exact:
            holding = self.claims.holding_of(task.item.bucket) or self.claims.begin(
                task.item.bucket
            )
            if holding is None:
                self.tasks.pop((task.origin, task.item.number), None)  # not ours: it comes back
                return
            if not self._is_enough(task, holding):
                holding.held.append(task)
                return
            task.round = holding.round
            task.places.clear()  # where what came of it went; it is all made again
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
                # What arrives meets its partners whether or not it stays: only they can be missing.
                others = (p.stem for i, p in enumerate(operator.ports) if i != port)
                share = task.item.share * stems.completeness(others)
                self._emit(operator, outputs, task, replay, share)

    def _store_only(self, stem: Stem, parts: Parts) -> None:
        """What was joined before: here, or at a partner."""
        delegation = self.partners.of(stem.key(parts))
        if delegation is not None:
            self.partners.store(delegation, stem, parts)
        else:
            self._store(stem, parts)

    def _store(self, stem: Stem, parts: Parts, share: float = 1.0) -> None:
        """Here; to a partner it goes when it is joined."""
        value = stem.key(parts)
        if self.partners.of(value) is None:
            self.stems.add(stem.name, value, parts, stem.end(parts), share)

    def _emit(
        self,
        operator: Operator,
        outputs: list[Parts],
        task: Task,
        replay: Replay | None,
        share: float,
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
                number = self._peer.enqueue(stem, parts, ("task", task), replay, share=share)
                task.open.add(number)
        if replay is None:
            self.results += len(outputs) * len(operator.queries)
            for query in operator.queries:
                self.found.add(query, outputs, share, task)

    # --- acknowledgements ---

    def rows_done(self, token: int) -> None:
        for task in self.found.done(token):
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
        holding = self.claims.holding_of(task.item.bucket)
        if holding is None:
            return
        if not self._is_enough(task, holding):
            holding.held.append(task)  # sources have come since: it may have more to meet
        elif task.round != holding.round:
            self.go_on(task)  # and so it may where the claim is complete again by now
        else:
            self._acknowledge(task, holding)

    def _is_enough(self, task: Task, holding: Holding) -> bool:
        return (
            self.claims.is_complete(holding) if task.needs is None else holding.level >= task.needs
        )

    def _acknowledge(self, task: Task, holding: Holding | None) -> None:
        self.tasks.pop((task.origin, task.item.number), None)
        if holding is not None:
            task.places[task.item.bucket, holding.life] = None
        done = self._done.setdefault((task.origin, task.hosted), [])
        done.append((task.item.number, tuple(task.places)))

    @property
    def has_done(self) -> bool:
        return bool(self._done)

    def flush_done(self) -> list[tuple[Address, Done]]:
        done, self._done = self._done, {}
        life = self.partners.life
        return [
            (origin, Done(tuple(items), life if hosted else ""))
            for (origin, hosted), items in done.items()
        ]

    # --- claims ---

    def tend(self, now_us: int) -> list[Effect]:
        """Let go of what is another's, and press on with claims."""
        self._let_go()
        self._replace_failed()
        self.purge()
        self.partners.purge()
        effects = [*self.partners.tend(now_us), *self._look_if_idle(now_us)]
        if self._peer.dataflow.exact_streams:
            for holding in self.claims.holdings:
                effects += self.claims.press(now_us, holding)
        return effects

    def _look_if_idle(self, now_us: int) -> list[Effect]:
        """What is stored can only be purged by one who hears how far the streams are."""
        if not self.stored:
            self._idle_since_us = now_us
        if now_us - self._idle_since_us < _IDLE_US:
            return []
        self._idle_since_us = now_us
        return [e for s in self._peer.dataflow.exact_streams for e in self.claims.look(now_us, s)]

    def _let_go(self) -> None:
        """Of buckets that the ring gives to others: they claim them, and build them anew."""
        owned = self._peer.owned()
        kept = []
        for holding in self.claims.holdings:
            gone = without(holding.runs, owned)
            if gone:
                self._drop(gone)
                holding.runs = without(holding.runs, gone)
            if holding.runs:
                kept.append(holding)
        self.claims.holdings = kept

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
                self._end(key, task)

    def _end(self, key: tuple[Address, int], task: Task) -> None:
        """Without an acknowledgement: its origin sends it again."""
        self.tasks.pop(key, None)
        task.dead = True

    def _replace_failed(self) -> None:
        """What was with a partner that is gone is rebuilt: a new life for all that is held."""
        if not self.partners.failed():
            return
        for task in self.partners.give_up():
            if not task.dead:
                self._end((task.origin, task.item.number), task)
        for holding in self.claims.holdings:
            self._drop(holding.runs)
        self.claims.holdings = []

    def purge(self) -> None:
        for name in self.stems.names():
            stem = self._peer.dataflow.stems.get(name)
            self.stems.purge(FOREVER if stem is None else self._peer.frontier(stem), (name,))


FOREVER = 1 << 62
