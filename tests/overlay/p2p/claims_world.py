"""Sources, owners and an asker under the worst of orders: no clocks, no ring, no register.

Nodes believe anything about who owns a bucket, for any time. Messages come in any order, twice, or
not at all; lists of sources change, and nodes hear of it whenever they do. What is left is the law
of claims: two tuples that join and are both acknowledged have met. A whole run takes milliseconds.
"""

from __future__ import annotations

import random
from itertools import product
from types import SimpleNamespace

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.membership import Membership
from thalweg.overlay.p2p.index import Index
from thalweg.overlay.p2p.index_messages import Publish
from thalweg.overlay.p2p.peer import PeerSettings
from thalweg.overlay.p2p.planning import plan_joins
from thalweg.overlay.p2p.query import Between, JoinQuery, Leaf, to_text
from thalweg.overlay.p2p.result_messages import RowsDone, SendRows
from thalweg.overlay.p2p.source import Source
from thalweg.overlay.p2p.stream_messages import AskStream, Look, Status
from thalweg.overlay.p2p.tuples import ids_of
from thalweg.overlay.protocol import Call, Heard, Init, Receive, Send, Tell, TimerFired
from thalweg.overlay.query_spreading import Learned, QuerySpreading
from thalweg.overlay.query_table import Record

NODES = ("n1", "n2", "n3", "n4")
TIMERS = ("retry", "tend", "report")
ROUND_US = 700_000
MOST_SOURCES = 6
FOR_LONG = 1 << 40


def _query() -> JoinQuery:
    """X and Y meet by one value, and what they make meets Z by another, in another bucket."""
    leaves = (Leaf("X", FOR_LONG), Leaf("Y", FOR_LONG), Leaf("Z", FOR_LONG))
    equalities = [Between(0, 0, "=", 1, 0), Between(1, 1, "=", 2, 0)]
    joins, rest = plan_joins(leaves, equalities, {})
    return JoinQuery("q", "asker", leaves, joins, ((0, 0), (1, 0), (2, 0)), rest)


QUERY = _query()
VALUES = {"X": (1, 0), "Y": (1, 4), "Z": (4, 0)}


class ClaimsWorld:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_us = 0
        self.bag: list[tuple[str, object]] = []  # (to, event)
        self.rows: set[tuple[tuple[str, int], ...]] = set()  # that the asker has
        self.lists: dict[str, list[tuple[str, int, str]]] = {s: [] for s in "XYZ"}
        self.versions = dict.fromkeys("XYZ", 0)
        self.nodes = {a: self._node(a) for a in NODES}
        buckets = self.nodes["n1"].peer.buckets
        self.places = sorted({buckets.of(v) for v in (1, 4)})
        self.views = {a: dict.fromkeys(self.places, "n1") for a in NODES}
        self.admitted = 0
        for stream, node in zip("XYZ", NODES, strict=False):
            self.admit(stream, node)
        self.held_up = ""  # a node that nothing reaches, and that does nothing, for a while

    def _node(self, address: str) -> Index:
        membership = Membership()
        chord = Chord(membership)
        spreading = QuerySpreading(chord)
        record = Record("q", to_text(QUERY))
        spreading.table.merge(record)
        index = Index(chord, membership, spreading, PeerSettings(buckets=16))
        peer = index.peer
        peer.owns = lambda bucket: self.views[address].get(bucket) == address  # type: ignore[method-assign]
        peer.owned = lambda: tuple(  # type: ignore[method-assign]
            (b, b) for b in self.places if self.views[address][b] == address
        )
        peer.next_hop = lambda bucket: self._towards(address, bucket)  # type: ignore[method-assign]
        peer.chord = SimpleNamespace(neighbours=list)  # type: ignore[assignment]
        index.step(0, Init(address, self.random.randrange(1 << 40), {}))
        index.step(0, Heard("query-spreading", Learned(record, None)))
        return index

    def _towards(self, address: str, bucket: int) -> str | None:
        owner = self.views[address].get(bucket)
        return None if owner == address else owner

    # --- what happens

    def admit(self, stream: str, node: str) -> None:
        """A new source, above all that there was: the register knows first."""
        self.admitted += 1
        id_ = f"{stream.lower()}{self.admitted}"
        self.lists[stream].append((id_, 1, node))
        self.versions[stream] += 1
        source = Source(stream, id_, is_open=True, listed=self.versions[stream])
        self.nodes[node].sources.sources[id_] = source
        self._step(node, Heard("p2p-streams", self.status(stream)))

    def status(self, stream: str) -> Status:
        return Status(stream, 0, self.versions[stream], tuple(self.lists[stream]), {}, {}, {})

    def publish(self) -> None:
        stream = self.random.choice("XYZ")
        source, _, node = self.random.choice(self.lists[stream])
        if node != self.held_up:
            self._step(node, Call(Publish(source, (VALUES[stream],))))

    def _step(self, address: str, event: object) -> None:
        for effect in self.nodes[address].step(self.now_us, event):
            match effect:
                case Send(to, message):
                    self.bag.append((to, Receive(address, message)))
                case Tell("p2p-results", SendRows() as sent):
                    self.rows |= {ids_of(parts) for parts in sent.rows}
                    self.bag.append((address, Heard("p2p-results", RowsDone(sent.token))))
                case Tell("p2p-streams", AskStream(stream, Look())):
                    self.bag.append((address, Heard("p2p-streams", self.status(stream))))

    def round(self) -> None:
        """Somewhat less than a second."""
        draw = self.random.random
        self.now_us += ROUND_US
        if draw() < 0.15:
            self._shift()
        if draw() < 0.15:
            # Most often an owner: it comes back, and thinks that it still is one.
            owners = [self.views["n1"][b] for b in self.places]
            self.held_up = self.random.choice(("", *owners, self.random.choice(NODES)))
        if draw() < 0.04 and self.admitted < MOST_SOURCES:
            self.admit(self.random.choice("XYZ"), self.random.choice(NODES))
        for address in self.random.sample(NODES, len(NODES)):
            if address != self.held_up:
                for timer in TIMERS:
                    self._step(address, TimerFired(timer))
        for _ in range(self.random.choice((0, 1, 1, 2))):
            self.publish()
        for _ in range(6):
            self._deliver_some()

    def _shift(self) -> None:
        """A bucket becomes another's; some hear of it at another time."""
        owner, bucket = self.random.choice(NODES), self.random.choice(self.places)
        for address in NODES:
            if address != self.held_up and self.random.random() < 0.8:
                self.views[address][bucket] = owner

    def _deliver_some(self) -> None:
        bag, self.bag = self.bag, []
        self.random.shuffle(bag)
        for to, event in bag:
            fate = self.random.random()
            if to == self.held_up or fate < 0.15:
                self.bag.append((to, event))  # later
                continue
            if isinstance(event, Receive):
                if fate < 0.2:
                    continue  # never
                if fate < 0.25:
                    self.bag.append((to, event))  # twice
            self._step(to, event)

    def calm(self) -> None:
        """All agree, and nothing gets lost any more: everything takes effect."""
        self.held_up = ""
        for bucket in self.places:
            owner = self.random.choice(NODES)
            for address in NODES:
                self.views[address][bucket] = owner
        for _ in range(200):
            for address, timer in product(NODES, TIMERS):
                self._step(address, TimerFired(timer))
            while self.bag:
                self._step(*self.bag.pop(0))
            if not self.open():
                return
            self.now_us += ROUND_US

    # --- what became of it

    def open(self) -> list[tuple[str, int]]:
        """Tuples that are not acknowledged."""
        sources = [s for n in self.nodes.values() for s in n.sources.sources.values()]
        return [(s.id, seq) for s in sources for seq in s.busy]

    def missing(self) -> list[tuple[tuple[str, int], ...]]:
        """Combinations of acknowledged tuples that the asker does not have."""
        taken: dict[str, list[tuple[str, int]]] = {s: [] for s in "XYZ"}
        for node in self.nodes.values():
            for source in node.sources.sources.values():
                ids = [(source.id, seq) for seq in source.log if seq not in source.busy]
                taken[source.stream] += ids
        order = QUERY.leaves_of(len(QUERY.joins) - 1)
        of_leaves = [taken[QUERY.leaves[leaf].stream] for leaf in order]
        return [ids for ids in product(*of_leaves) if ids not in self.rows]
