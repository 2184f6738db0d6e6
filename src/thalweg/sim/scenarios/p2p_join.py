"""Joins between peers: what is final is the reference's changelog, all of it, once."""

from __future__ import annotations

from typing import ClassVar

from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.generator import Generator
from thalweg.overlay.gossip import Gossip, GossipTimes
from thalweg.overlay.membership import Membership
from thalweg.overlay.p2p.from_plan import join_query
from thalweg.overlay.p2p.index import Index
from thalweg.overlay.p2p.index_messages import (
    AcceptedUpto,
    Open,
    Opened,
    PromiseUpto,
    Publish,
    Published,
    Superseded,
    TookOver,
)
from thalweg.overlay.p2p.peer import PeerSettings
from thalweg.overlay.p2p.query import JoinQuery
from thalweg.overlay.p2p.register import StreamState, address_of
from thalweg.overlay.p2p.result_messages import Combination, Final, SubmitJoin
from thalweg.overlay.p2p.results import OpenQuery, Results
from thalweg.overlay.p2p.stream_messages import CreateStream, NodesGone
from thalweg.overlay.p2p.streams import Streams, StreamSettings
from thalweg.overlay.p2p.tuples import Parts, Tup
from thalweg.overlay.protocol import Address
from thalweg.overlay.query_spreading import QuerySpreading
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.options import FAULTS, Options
from thalweg.sim.scenarios.chord import SETTINGS, ChordScenario, members, tables_unsettled
from thalweg.sim.scenarios.p2p_judging import eager_problem, exact_problem, shed_problem
from thalweg.sim.scenarios.p2p_world import INSTANT_US, Draw, draw, plans
from thalweg.sim.world import World

STREAMS = "XYZV"
GOSSIP = GossipTimes(floor_us=2 * SECOND_US, ceiling_us=5 * SECOND_US)


class P2PJoinScenario(ChordScenario):
    name = "p2p-join"
    about = "joins between peers: exact results through churn, loss and partitions"
    fewest_nodes = 6
    most_nodes = 9
    warm_up_us: ClassVar[int] = 12 * SECOND_US
    storm_us: ClassVar[int] = 16 * SECOND_US
    settle_within_us: ClassVar[int] = 120 * SECOND_US
    stay_us: ClassVar[int] = 0
    act_every_us: ClassVar[int] = SECOND_US // 5
    suite_seeds: ClassVar[int] = 12

    def __init__(self, options: Options, generator: Generator) -> None:
        super().__init__(options, generator)
        self.draw: Draw = draw(generator)
        self.plans = dict(plans(generator))
        self.queries: dict[str, JoinQuery] = {}
        self.started = False
        self.opened: dict[str, Address] = {}  # source -> where it is, while it can publish
        self.opening: dict[str, Address] = {}
        self.numbers = 0
        self.tuples: dict[str, list[Tup]] = {}  # by source
        self.accepted: dict[str, int] = {}
        self.ends: dict[str, int] = {}  # of sources that were passed on
        self.finals: dict[str, list[Final]] = {}
        self.eagerly: dict[str, list[Parts]] = {}
        self.wrong: list[str] = []
        self.judged: set[str] = set()
        self.ended_at: int | None = None
        self.disturbed_until_us = 0  # speakers may be out of reach, and count as lost
        # In some runs sources are lost with all their copies: what is missing then is what is told.
        self.loses_sources = options.seed % 7 == 3 and not self.draw.eager
        self.told_gone: set[Address] = set()

    @classmethod
    def faults_of(cls, seed: int) -> tuple[str, ...]:
        return FAULTS

    # --- nodes ---

    def build(self, address: Address) -> Stack:
        membership = Membership()
        chord = Chord(membership, SETTINGS)
        spreading = QuerySpreading(chord)
        gossip = Gossip(chord, spreading, GOSSIP)
        streams = Streams(chord, membership, spreading, StreamSettings())
        settings = PeerSettings(
            copies=self.draw.copies,
            buckets=32,
            instant_us=INSTANT_US,
            room=self.draw.room,
            registered=not self.draw.eager,
            alerts=self.draw.alerts,
            capacity=self.draw.capacity,
            overloaded=None if self.draw.capacity is None else 0.5,
        )
        index = self.index(chord, membership, spreading, settings)
        return Stack([membership, chord, spreading, gossip, streams, index, Results()])

    def index(
        self,
        chord: Chord,
        membership: Membership,
        spreading: QuerySpreading,
        settings: PeerSettings,
    ) -> Index:
        return Index(chord, membership, spreading, settings)

    # --- workload ---

    def act(self, world: World) -> None:
        if not self.started:
            if world.now_us > 5 * SECOND_US and len(members(world)) == self.options.nodes:
                self._start(world)
            return
        if self.generator.chance(0.04):
            self._open_one(world, self.generator.choice(STREAMS))
        quiet = self._quiet_stream(world) if self.draw.alerts else None
        names = [s for s in self.opened if s[0] != quiet]
        if not names:
            return
        for _ in range(self.generator.choice((1, 1, 2))):
            source = self.generator.choice(names)
            rows = [self._row() for _ in range(self.generator.choice((1, 1, 2)))]
            stamps = self._stamps(world, len(rows))
            request = Publish(source, tuple(rows), stamps=stamps)
            world.call(self.opened[source], "p2p-index", request)

    def _stamps(self, world: World, count: int) -> tuple[int, ...]:
        """In event time: somewhat out of order, and now and then too late."""
        if self.draw.time is None:
            return ()
        now = world.now_us // INSTANT_US
        most = self.draw.time.lateness + 2
        return tuple([now - self.generator.below(most) for _ in range(count)])

    def _quiet_stream(self, world: World) -> str:
        """One after the other falls silent, for long enough that its window runs empty."""
        return STREAMS[world.now_us // (7 * SECOND_US) % len(STREAMS)]

    def _row(self) -> tuple[int, int]:
        draw = self.draw
        key = 0 if self.generator.chance(draw.hot) else self.generator.below(draw.domain)
        return key, self.generator.below(draw.domain)

    def _start(self, world: World) -> None:
        self.started = True
        hosts = [h.address for h in world.up()]
        if not self.draw.eager:
            for stream in STREAMS:
                world.call(self.generator.choice(hosts), "p2p-streams", CreateStream(stream))
        for name, plan in self.plans.items():
            asker = self.generator.choice(hosts)
            query = join_query(plan, name, asker, eager=self.draw.eager)
            self.queries[name] = query
            world.call(asker, "p2p-results", SubmitJoin(query))
        for stream in STREAMS:
            for _ in range(self.generator.choice((1, 1, 2))):
                self._open_one(world, stream)

    def _open_one(self, world: World, stream: str) -> None:
        hosts = [h for h in members(world) if not h.paused and not h.busy]
        if hosts:
            self.numbers += 1
            source = f"{stream}{self.numbers}"
            address = self.generator.choice(hosts).address
            self.opening[source] = address
            world.call(address, "p2p-index", Open(stream, source, self.draw.time))

    def delivered(self, host: Host, protocol: str, value: object) -> None:
        match value:
            case Opened(source):
                if self.opening.get(source) == host.address:
                    self.opened[source] = host.address
            case Published(source, _, tuples):
                self.tuples.setdefault(source, []).extend(tuples)
            case AcceptedUpto(source, seq):
                self.accepted[source] = max(seq, self.accepted.get(source, 0))
            case TookOver(source, _, upto):
                self.opened.pop(source, None)
                self.ends[source] = upto  # the last heir's word: others had accepted no more
                if upto < self.accepted.get(source, 0):
                    self.wrong.append(f"{source} lost what it had accepted, from {upto} on")
            case Superseded(source):
                self.opened.pop(source, None)
            case Final(query, since, _, _):
                known = self.finals.setdefault(query, [])
                if known and known[-1].upto > since:
                    self.wrong.append(f"{query} says instants from {since} on again")
                known.append(value)
            case Combination(query, parts):
                self.eagerly.setdefault(query, []).append(parts)

    # --- promises ---

    def can_spare(self, world: World, host: Host) -> bool:
        """As for the ring; no asker, no only holder of a source, no majority of a register."""
        if not self.started or not super().can_spare(world, host):
            return False
        if any(q.asker == host.address for q in self.queries.values()):
            return False
        if self.draw.eager:
            return True
        spared = self.loses_sources or self._copies_spare(world, host)
        return spared and self._register_spares(world, host)

    def _register_spares(self, world: World, host: Host) -> bool:
        up = {h.address for h in world.up() if h is not host and not h.paused}
        for stream in STREAMS:
            states = states_of(world, stream)
            if not states:
                return False
            newest = max(states, key=lambda s: s.version)
            tokens = {t for t in tokens_of(world, stream) if t.split("#")[0] in up}
            if not newest.has_quorum(tokens):
                return False
        return True

    def _copies_spare(self, world: World, host: Host) -> bool:
        """Each registered source is whole at another live node: its speaker, or all its holders."""
        index = index_at(host)
        if not self.draw.copies or world.now_us < self.disturbed_until_us:
            return not index.sources.sources and not index.copies.logs
        rest = {h.address: h for h in world.up() if h is not host and not h.paused}
        for stream in STREAMS:
            newest = max(states_of(world, stream), key=lambda s: s.version)
            for source, entry in newest.sources.items():
                speaker = rest.get(entry.address)
                if speaker is not None and source in index_at(speaker).sources.sources:
                    continue
                there = [(d, rest[address_of(d)]) for d in entry.copies if address_of(d) in rest]
                holders = [c for d, h in there if (c := index_at(h).copies).disk == d]
                if not holders or not all(source in c.logs for c in holders):
                    return False
        return True

    def broken(self, world: World) -> str | None:
        weather = world.weather
        parted = weather is not None and (weather.cut or weather.clogged_until_us)
        if parted or any(h.paused or h.step_cost_us for h in world.up()):
            self.disturbed_until_us = world.now_us + _LOST_WITHIN_US
        return self.wrong[0] if self.wrong else None

    def unsettled(self, world: World) -> str | None:
        if problem := tables_unsettled(world):
            return problem
        if self.draw.eager:
            return self._judge_eager(world)
        if self.ended_at is None:
            self.ended_at = 1 + max(
                (t.ts for tuples in self.tuples.values() for t in tuples), default=0
            )
        if self.loses_sources:
            self._give_up_lost(world)
        if self.draw.time is not None:
            self._end_time(world)
        for name in self.queries:
            if problem := self._judge(world, name):
                return problem
        return self._memory_problem(world)

    def _end_time(self, world: World) -> None:
        """Event time goes on by promises, where no tuples come."""
        assert self.ended_at is not None
        up = {h.address for h in world.up() if not h.paused and not h.busy}
        for stream in STREAMS:
            known = dict(self.opening)
            here = [s for s, a in known.items() if s[0] == stream and a in up]
            if not any(s in self.opened for s in here):
                if not any(s in index_at(world.hosts[known[s]]).sources.sources for s in here):
                    self._open_one(world, stream)
                continue
            for source in here:
                if source in self.opened:
                    request = PromiseUpto(source, self.ended_at + _BEHIND_ALL)
                    world.call(known[source], "p2p-index", request)

    def _give_up_lost(self, world: World) -> None:
        """Tell all who is not coming back. A stream without sources gets one: time has to go on."""
        gone = {h.address for h in world.hosts.values() if not h.is_up}
        for stream in STREAMS:
            newest = max(states_of(world, stream), key=lambda s: s.version)
            for source, entry in newest.sources.items():
                host = world.hosts[entry.address]
                if host.is_up and source not in index_at(host).sources.sources:
                    gone.add(entry.address)  # it has lost its disk
            if newest.lost and not newest.sources:
                self._open_one(world, stream)
        if gone - self.told_gone:
            self.told_gone |= gone
            for host in world.up():
                world.call(host.address, "p2p-streams", NodesGone(tuple(sorted(gone))))

    def _end_forgotten(self, world: World) -> None:
        """Sources that were lost before they had copies: only what was accepted counts."""
        for source in self.tuples:
            newest = max(states_of(world, source[0]), key=lambda s: s.version)
            if source not in newest.sources:
                self.ends.setdefault(source, self.accepted.get(source, 0))

    def truth(self) -> list[Tup]:
        """The tuples that count: of a source that was passed on, those before its end."""
        return [
            t
            for source, tuples in self.tuples.items()
            for t in tuples
            if t.seq < self.ends.get(source, 1 << 60)
        ]

    def _judge(self, world: World, name: str) -> str | None:
        query = self.queries[name]
        standing = standing_at(world, query)
        assert self.ended_at is not None
        final_at = self.ended_at + query.longest_window + 2
        if standing.horizon is None:
            return f"{name} has no horizon: {standing.horizons}"
        if standing.said < final_at:
            return f"{name} has said {standing.said} of {final_at}: {standing.frontiers}"
        if name in self.judged:
            return None
        self.judged.add(name)
        self._end_forgotten(world)
        said = [c for f in self.finals.get(name, []) for c in f.changes]
        judge = exact_problem if self.draw.room is None else shed_problem
        if problem := judge(self.plans[name], standing, self.truth(), said):
            self.wrong.append(problem)
        return None

    def _judge_eager(self, world: World) -> str | None:
        for query in self.queries.values():
            if problem := eager_problem(query, self.truth(), self.eagerly.get(query.id, [])):
                self.wrong.append(problem)
        return None

    def _memory_problem(self, world: World) -> str | None:
        """What has expired is purged."""
        for host in world.up():
            index = index_at(host)
            for name in index.owner.stems.names():
                stem = index.peer.dataflow.stems.get(name)
                if stem is not None and stem.exact:
                    done = min(standing_at(world, self.queries[q]).said for q in stem.queries)
                    if index.owner.stems.expired_in(name, done - _MAY_LAG):
                        return f"{host.address} keeps tuples in {name} that ended before {done}"
        return None

    def describe(self, host: Host) -> str:
        index = index_at(host)
        sources = ", ".join(sorted(index.sources.sources)) or "no sources"
        return f"{sources}; {index.owner.stems.size} stored"


_LOST_WITHIN_US = 12 * SECOND_US  # a silent source is passed on within this time
_BEHIND_ALL = 1_000  # instants: more than the longest window
_MAY_LAG = 20 * SECOND_US // INSTANT_US


def index_at(host: Host) -> Index:
    assert host.stack is not None
    found = host.stack["p2p-index"]
    assert isinstance(found, Index)
    return found


def streams_at(host: Host) -> Streams:
    assert host.stack is not None
    found = host.stack["p2p-streams"]
    assert isinstance(found, Streams)
    return found


def states_of(world: World, stream: str) -> list[StreamState]:
    groups = [streams_at(h).groups.get(stream) for h in world.up()]
    return [g.stored.state for g in groups if g is not None]


def tokens_of(world: World, stream: str) -> list[str]:
    return [streams_at(h).token for h in world.up() if stream in streams_at(h).groups]


def standing_at(world: World, query: JoinQuery) -> OpenQuery:
    stack = world.hosts[query.asker].stack
    assert stack is not None
    results = stack["p2p-results"]
    assert isinstance(results, Results)
    return results.standing[query.id]
