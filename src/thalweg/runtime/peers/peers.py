"""The peers, as seen from one of them: registers of streams, sources here, joins that were asked
for here. All of it is the protocols' affair; this waits for their answers."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from thalweg.engine.site import SiteError, WrongUse
from thalweg.overlay.p2p.index_messages import (
    AcceptedUpto,
    EventTime,
    NotPublished,
    Open,
    Opened,
    PromiseUpto,
    Publish,
    Published,
    Superseded,
)
from thalweg.overlay.p2p.query import JoinQuery
from thalweg.overlay.p2p.register import address_of
from thalweg.overlay.p2p.result_messages import Combination, DropJoin, Final, SubmitJoin, Took
from thalweg.overlay.p2p.results import OpenQuery
from thalweg.overlay.p2p.source import Source
from thalweg.overlay.p2p.stream_messages import (
    AskStream,
    CreateStream,
    Look,
    NodesGone,
    Status,
    StreamGone,
)
from thalweg.overlay.query_spreading import Drop
from thalweg.overlay.stack import Stack
from thalweg.runtime.driver.driver import Driver
from thalweg.runtime.peers.calls import Calls, chord_of, index_of, results_of, streams_of

RING_WITHIN_S = 30.0
CREATE_WITHIN_S = 15.0
OPEN_WITHIN_S = 15.0
COPIED_WITHIN_S = 20.0
RATE_WITHIN_S = 2.0

T = TypeVar("T")


class NotNow(SiteError):
    """What is wanted needs nodes that do not answer: try again."""


class Peers(Calls):
    """Over a driver with the stack of `peer_stack`. May be called from any thread."""

    def __init__(
        self,
        driver: Driver,
        copies: int,
        traffic: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        super().__init__(driver)
        self.copies = copies
        self._traffic = traffic
        self._statuses: dict[str, Status] = {}
        self._heard: Counter[str] = Counter()  # how often a stream's register has answered
        self._opened: set[str] = set()
        self._accepted: dict[str, int] = {}
        self._listeners: dict[str, Callable[[Final | Combination], None]] = {}
        self._opening = threading.Lock()
        for protocol in ("p2p-streams", "p2p-index", "p2p-results"):
            driver.on(protocol, self._told)

    def _told(self, value: object) -> None:
        if isinstance(value, Final | Combination):
            listener = self._listeners.get(value.query)
            if listener is not None:
                listener(value)
            return
        with self._news:
            match value:
                case Status(stream):
                    self._statuses[stream] = value
                    self._heard[stream] += 1
                case Opened(source):
                    self._opened.add(source)
                case Superseded(source):
                    self._opened.discard(source)
                case AcceptedUpto(source, seq):
                    self._accepted[source] = max(seq, self._accepted.get(source, 0))
            self._news.notify_all()

    def wait_for_ring(self) -> None:
        def is_in() -> bool:
            return self.read(lambda stack: chord_of(stack).joined)

        if not self._wait(is_in, RING_WITHIN_S, lambda: None):
            raise NotNow("this node has not found the ring of its peers yet: try again")

    # --- streams

    def create(self, stream: str) -> None:
        """Make the register of a stream that is new. Raises NotNow: then the id is spent."""
        self.wait_for_ring()
        self._call("p2p-streams", CreateStream(stream))
        if self.look(stream, CREATE_WITHIN_S) is None:
            raise NotNow(
                f"the nodes that are to keep the register of {stream.rpartition('#')[0]} do not "
                "answer: submit it again"
            )

    def end(self, stream: str) -> None:
        """A stream was dropped: its register, its sources and copies that are here go."""
        for protocol in ("p2p-streams", "p2p-index"):
            self._call(protocol, StreamGone(stream))
        for known in (self._statuses, self._heard):
            known.pop(stream, None)

    def look(self, stream: str, within_s: float) -> Status | None:
        """How far a stream is; what was heard last, if nobody answers in time."""
        before = self._heard[stream]

        def ask() -> None:
            self._call("p2p-streams", AskStream(stream, Look()))

        self._wait(lambda: self._heard[stream] > before, within_s, ask)
        return self._statuses.get(stream)

    def rate(self, stream: str) -> float | None:
        """Tuples an instant, as its sources have measured; None: nothing has come of it, or nobody
        has told."""
        status = self.look(stream, RATE_WITHIN_S)
        return None if status is None else status.rate or None

    def statuses(self) -> Mapping[str, Status]:
        return self.read(lambda stack: dict(index_of(stack).peer.statuses))

    # --- sources

    def sources(self) -> list[Source]:
        """As they are between two steps; only numbers of them may be looked at."""
        return self.read(lambda stack: list(index_of(stack).sources.sources.values()))

    def source(self, stream: str, partition: int, when: EventTime) -> str:
        """The id of this node's source; made, and registered, where there is none."""
        with self._opening:
            found = self._find(stream, partition)
            if found is None:
                self.wait_for_ring()
                found = f"{partition}.{secrets.token_hex(8)}"
                self._call("p2p-index", Open(stream, found, when))
        self.await_open(found)
        return found

    def _find(self, stream: str, partition: int) -> str | None:
        def find(stack: Stack) -> str | None:
            for source in index_of(stack).sources.sources.values():
                is_it = source.stream == stream and source.id.startswith(f"{partition}.")
                if is_it and not source.is_heir:
                    return source.id
            return None

        return self.read(find)

    def await_open(self, source: str) -> None:
        def is_open() -> bool:
            return source in self._opened

        def look() -> None:
            def is_it(stack: Stack) -> bool:
                known = index_of(stack).sources.sources.get(source)
                return known is not None and known.is_open

            if self.read(is_it):
                self._opened.add(source)

        if not self._wait(is_open, OPEN_WITHIN_S, look):
            raise NotNow("the nodes that keep the stream's register do not answer: push again")

    def publish(self, request: Publish | PromiseUpto) -> Published:
        """Stamped and on this node's disk; `await_copies` before it is acknowledged. Raises
        NotNow."""
        (answer,) = [
            v for v in self._call("p2p-index", request) if isinstance(v, Published | NotPublished)
        ]
        if isinstance(answer, NotPublished):
            if answer.for_ever:
                raise WrongUse(answer.why)
            self._opened.discard(request.source)
            raise NotNow(f"{answer.why}: push again")
        return answer

    def await_copies(self, source: str, upto: int) -> None:
        """Until all before `upto` counts. Raises NotNow; then it may count all the same: push again
        with the same batch id."""
        if not self.copies or not upto:
            return

        def is_accepted() -> bool:
            return self._accepted.get(source, 0) >= upto

        def look() -> None:
            def accepted(stack: Stack) -> int:
                known = index_of(stack).sources.sources.get(source)
                return 0 if known is None else known.accepted

            self._accepted[source] = max(self.read(accepted), self._accepted.get(source, 0))

        if not self._wait(is_accepted, COPIED_WITHIN_S, look):
            raise NotNow(
                f"no {self.copies} other nodes have a copy yet: push again with the same batch id"
            )

    # --- joins

    def submit(self, query: JoinQuery, listener: Callable[[Final | Combination], None]) -> None:
        """Once; a query that stands goes on."""
        self._listeners[query.id] = listener
        if not self.read(lambda stack: query.id in results_of(stack).standing):
            self.wait_for_ring()
            self._call("p2p-results", SubmitJoin(query))

    def unheard(self, query: str) -> None:
        self._listeners.pop(query, None)

    def drop(self, query: str) -> None:
        self.unheard(query)
        self._call("p2p-results", DropJoin(query))

    def drop_of(self, asker: str) -> None:
        """Queries of a node that is gone for good."""

        def find(stack: Stack) -> list[str]:
            return [
                q.id for q in index_of(stack).peer.dataflow.queries.values() if q.asker == asker
            ]

        for query in self.read(find):
            self._call("query-spreading", Drop(query))

    def gone(self, address: str) -> None:
        """A node that will not come back: where nobody has copies, its sources are given up."""
        self._call("p2p-streams", NodesGone((address,)))

    def said(self, query: str, after: int) -> tuple[list[Final], int]:
        """Changes that the application lacks behind an instant, and how far it is final."""

        def find(stack: Stack) -> tuple[list[Final], int]:
            standing = results_of(stack).standing.get(query)
            if standing is None:
                return [], 0
            return [f for f in standing.untaken if f.upto > after], standing.said

        return self.read(find)

    def took(self, query: str, upto: int) -> None:
        self._call("p2p-results", Took(query, upto))

    def standing(self) -> list[str]:
        return self.read(lambda stack: list(results_of(stack).standing))

    def query(self, query: str, look: Callable[[OpenQuery], T]) -> T | None:
        def find(stack: Stack) -> T | None:
            standing = results_of(stack).standing.get(query)
            return None if standing is None else look(standing)

        return self.read(find)

    def waiting(self, query: str) -> dict[str, tuple[str, ...]]:
        """Its streams whose registers have no majority, and who kept them."""

        def find(stack: Stack) -> dict[str, tuple[str, ...]]:
            standing, streams = results_of(stack).standing.get(query), streams_of(stack)
            read = () if standing is None else standing.query.streams
            return {s: members for s in read if (members := streams.waits_for(s))}

        return self.read(find)

    def readers(self, stream: str) -> list[str]:
        """Standing queries, anywhere, that read a stream."""

        def find(stack: Stack) -> list[str]:
            queries = index_of(stack).peer.dataflow.queries.values()
            return [q.id for q in queries if stream in q.streams]

        return self.read(find)

    def ring(self) -> tuple[list[str], int]:
        """Nodes that run, as far as this one knows; and how many buckets they share."""

        def find(stack: Stack) -> tuple[list[str], int]:
            peer = index_of(stack).peer
            return [peer.address, *peer.membership.up()], peer.buckets.count

        addresses, buckets = self.read(find)
        return sorted(set(addresses)), buckets

    def backlog(self) -> int:
        """Tuples and intermediate results of this node that have not taken effect."""
        return self.read(lambda stack: len(index_of(stack).peer.outs))

    def role(self) -> dict[str, Any]:
        """What this node does for all."""

        def find(stack: Stack) -> dict[str, Any]:
            index = index_of(stack)
            peer, owner = index.peer, index.owner
            owned = sum(last - first + 1 for first, last in peer.owned())
            return {
                "is_in_ring": peer.chord.joined,
                "owned": owned / peer.buckets.count,
                "stored": owner.stored,
                "room": peer.settings.room,
                "shed": owner.shed,
                "partners": sorted({a for d in owner.partners.delegations for a in d.partners}),
                "hot": sorted({str(d.hot) for d in owner.partners.delegations if d.spread}),
                "sources": sorted({s.stream for s in index.sources.sources.values()}),
                "registers": sorted(streams_of(stack).keeps()),
                "copies": len(index.copies.logs),
                "copied_to": sorted(
                    {
                        address_of(d)
                        for s in index.sources.sources.values()
                        for d in s.logged_copies or ()
                    }
                ),
                "open": len(peer.outs),
                "queries": sorted(peer.dataflow.queries),
            }

        return {**self.read(find), "traffic": dict(self._traffic())}
