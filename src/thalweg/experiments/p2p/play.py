"""One run of a way to join: tuples arrive, queries come, and all messages are counted."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from thalweg.experiments.p2p.rings import CountingNetwork, dhtjoin, ring
from thalweg.experiments.p2p.workload import Arriving
from thalweg.overlay.p2p.gathering import GatheredResult, Gathering, GatherQuery, GatherTuple
from thalweg.overlay.p2p.index_messages import Open, Publish
from thalweg.overlay.p2p.peer import PeerSettings
from thalweg.overlay.p2p.query import JoinQuery
from thalweg.overlay.p2p.result_messages import Combination, Final, SubmitJoin
from thalweg.overlay.p2p.rjoin import InsertTuple, RJoin, RJoinResult, SubmitRJoin
from thalweg.overlay.p2p.stream_messages import CreateStream
from thalweg.overlay.p2p.tuples import Tup, ids_of
from thalweg.overlay.protocol import Address
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.world import World

DHTJOIN, RJOIN, GATHERING = "DHTJoin", "RJoin", "gathering"
ACKNOWLEDGEMENTS = (("p2p-index", "Done"), ("p2p-results", "Got"))
RESULTS = (("p2p-results", "Rows"), ("rjoin", "Answer"), ("gathering", "Gathered"))


# At once, each message along the ring, as DHTJoin's put does.
AS_PRINTED = PeerSettings(
    registered=False,
    buckets=1 << 16,
    remember_owners=False,
    report_every_us=10 * SECOND_US,
    retry_every_us=10 * SECOND_US,
    claim_every_us=5 * SECOND_US,
)


@dataclass(frozen=True, slots=True)
class Case:
    method: str
    nodes: int
    arrivals: Sequence[Arriving]
    queries: Sequence[tuple[int, JoinQuery]]  # when each comes, µs
    seed: int
    settings: PeerSettings = AS_PRINTED
    settle_s: float = 10.0
    sources: int | None = None  # nodes that feed each stream; None: any node
    count_bytes: bool = False  # takes as long as all the rest


@dataclass(slots=True)
class Seen:
    messages: int = 0
    bytes: int = 0
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    tuples: int = 0
    results: int = 0
    ids: set[tuple[str, tuple[tuple[str, int], ...]]] = field(default_factory=set)
    delays_s: list[float] = field(default_factory=list)  # from the last tuple to the result
    busiest: int = 0  # messages that the busiest node received
    shares: list[float] = field(default_factory=list)

    def count(self, kinds: Sequence[tuple[str, str]]) -> int:
        return sum(self.kinds[k] for k in kinds)

    @property
    def without_acknowledgements(self) -> int:
        return self.messages - self.count(ACKNOWLEDGEMENTS)

    @property
    def traffic(self) -> int:
        """As the sources count: neither acknowledgements nor final results."""
        return self.without_acknowledgements - self.count(RESULTS)


def play(case: Case, *, keep_ids: bool = False) -> Seen:
    seen = Seen()
    born_us: dict[tuple[str, int], int] = {}  # when a tuple came in
    network = CountingNetwork(has_queues=case.count_bytes)

    def result(query: str, ids: tuple[tuple[str, int], ...], share: float) -> None:
        seen.results += 1
        seen.shares.append(share)
        came = [born_us[i] for i in ids if i in born_us]
        if came:
            seen.delays_s.append((world.now_us - max(came)) / SECOND_US)
        if keep_ids:
            seen.ids.add((query, ids))

    def on_deliver(host: Host, protocol: str, value: object) -> None:
        match value:
            case Combination(query, parts, _, share):
                result(query, ids_of(parts), share)
            case RJoinResult(query, parts):
                result(query, ids_of(parts), 1.0)
            case GatheredResult(query, parts):
                result(query, ids_of(parts), 1.0)
            case Final(query, _, _, changes):
                seen.results += sum(op == "+" for _, op, _ in changes)

    world = _world(case, network, on_deliver)
    feeder = _Feeder(world, case, born_us)
    feeder.schedule()
    last_us = case.arrivals[-1].at_us if case.arrivals else 0
    world.kernel.run_until(feeder.begins_us + last_us + int(case.settle_s * SECOND_US))
    gc.unfreeze()
    seen.messages, seen.bytes = network.messages, network.bytes
    seen.kinds = world.sent
    seen.tuples = len(case.arrivals)
    seen.busiest = max(network.heaviest.values(), default=0)
    return seen


def _world(case: Case, network: CountingNetwork, on_deliver) -> World:  # type: ignore[no-untyped-def]
    if case.method == DHTJOIN:
        upper = dhtjoin(case.settings)
    elif case.method == RJOIN:
        upper = lambda chord, membership: [RJoin(chord)]  # noqa: E731
    elif case.method == GATHERING:
        upper = lambda chord, membership: [Gathering("n0")]  # noqa: E731
    else:
        raise ValueError(f"there is no way {case.method} to join")
    return ring(case.nodes, upper, on_deliver, seed=case.seed, network=network)


class _Feeder:
    """Tuples at the nodes that feed their streams; each has one source for each stream it feeds."""

    def __init__(self, world: World, case: Case, born_us: dict[tuple[str, int], int]) -> None:
        self.world = world
        self.case = case
        self.begins_us = 0
        self._born_us = born_us
        self._numbers: Counter[str] = Counter()
        self._opened: dict[str, None] = {}
        self._turn = 0

    def schedule(self) -> None:
        world, case = self.world, self.case
        streams = sorted({a.stream for a in case.arrivals})
        if case.method == DHTJOIN and case.settings.registered:
            for number, stream in enumerate(streams):
                world.call(f"n{number % case.nodes}", "p2p-streams", CreateStream(stream))
            world.run_for(3 * SECOND_US)
        for stream in streams:
            for address in self._homes(stream):
                self._open(stream, address)
        if case.method == DHTJOIN and case.settings.registered:
            world.run_for(5 * SECOND_US)
        self.begins_us = world.now_us
        for at_us, query in case.queries:
            world.kernel.at(self.begins_us + at_us, self._submit, query)
        for arriving in case.arrivals:
            world.kernel.at(self.begins_us + arriving.at_us, self._feed, arriving)

    def _homes(self, stream: str) -> list[Address]:
        count = self.case.nodes if self.case.sources is None else self.case.sources
        if count >= self.case.nodes:
            return [f"n{i}" for i in range(self.case.nodes)]
        start = sum(map(ord, stream)) * 7
        return [f"n{(start + i * 13) % self.case.nodes}" for i in range(count)]

    def _open(self, stream: str, address: Address) -> None:
        source = f"{stream}@{address}"
        if source not in self._opened and self.case.method == DHTJOIN:
            self.world.call(address, "p2p-index", Open(stream, source))
        self._opened[source] = None

    def _submit(self, query: JoinQuery) -> None:
        if self.case.method == DHTJOIN:
            self.world.call(query.asker, "p2p-results", SubmitJoin(query))
        elif self.case.method == RJOIN:
            self.world.call(query.asker, "rjoin", SubmitRJoin(query))
        else:
            for host in self.world.up():
                self.world.call(host.address, "gathering", GatherQuery(query))

    def _feed(self, arriving: Arriving) -> None:
        homes = self._homes(arriving.stream)
        self._turn += 1
        address = homes[(self._turn * 7919) % len(homes)]
        source = f"{arriving.stream}@{address}"
        now = self.world.now_us // 1_000
        self._born_us[source, self._numbers[source]] = self.world.now_us
        tup = Tup(arriving.stream, source, self._numbers[source], now, arriving.values)
        if self.case.method == DHTJOIN:
            before = self.world.host(address)
            assert before.stack is not None
            index = before.stack["p2p-index"]
            if index.peer.dataflow.stems_for(tup):  # type: ignore[attr-defined]
                self._numbers[source] += 1
            self.world.call(address, "p2p-index", Publish(source, (arriving.values,)))
            return
        self._numbers[source] += 1
        if self.case.method == RJOIN:
            self.world.call(address, "rjoin", InsertTuple(tup))
        else:
            self.world.call(address, "gathering", GatherTuple(tup))
