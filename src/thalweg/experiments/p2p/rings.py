"""A ring of peers that stands, and a network that counts what it carries.

Upkeep of the ring is left out (its timers are far away): it is the same for every way to join.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from thalweg.experiments.catalogue._ring import complete_tables
from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.chord.settings import Settings as ChordSettings
from thalweg.overlay.generator import Generator, seed_of
from thalweg.overlay.membership import Membership
from thalweg.overlay.membership import Settings as MembershipSettings
from thalweg.overlay.p2p.index import Index
from thalweg.overlay.p2p.peer import PeerSettings
from thalweg.overlay.p2p.results import Results
from thalweg.overlay.p2p.streams import Streams, StreamSettings
from thalweg.overlay.protocol import Address, NodeProtocol
from thalweg.overlay.query_spreading import QuerySpreading
from thalweg.overlay.stack import Stack
from thalweg.sim.host import Host
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.world import World

NEVER_US = 10**13
HOP_US = 100_000  # DHTJoin 5.4

Upper = Callable[[Chord, Membership], Sequence[NodeProtocol]]


@dataclass(slots=True)
class CountingNetwork:
    """Everybody is equally far; messages to oneself are none."""

    one_way_us: int = HOP_US
    has_queues: bool = True  # so that the size of each message is told; else bytes are not counted
    messages: int = 0
    bytes: int = 0
    heaviest: dict[int, int] = field(default_factory=dict)  # messages by receiver

    def latency_us(self, source: int, target: int) -> int:
        """Asked once for each message, where sizes are not."""
        if source == target:
            return 0
        self.messages += 1
        self.heaviest[target] = self.heaviest.get(target, 0) + 1
        return self.one_way_us

    def arrival_us(self, now_us: int, source: int, target: int, size_bytes: int) -> int:
        self.bytes += 0 if source == target else size_bytes
        return now_us + self.latency_us(source, target)


def ring(
    nodes: int,
    upper: Upper,
    on_deliver: Callable[[Host, str, object], None],
    *,
    seed: int,
    network: CountingNetwork,
) -> World:
    members = MembershipSettings(period_us=NEVER_US, compare_every_us=NEVER_US, capacity=64)
    settings = ChordSettings(
        stabilise_every_us=NEVER_US,
        fix_finger_every_us=NEVER_US,
        find_self_every_us=NEVER_US,
        answer_within_us=2_000_000,
        alone_after_us=NEVER_US,
    )

    def build(address: Address) -> Stack:
        membership = Membership(members)
        chord = Chord(membership, settings)
        return Stack([membership, chord, *upper(chord, membership)])

    world = World(build, seed=seed, network=network, on_deliver=on_deliver)
    for i in range(nodes):
        world.start(f"n{i}")
    complete_tables(world, Generator(seed_of(seed, "views")))
    gc.collect()
    gc.freeze()
    return world


def dhtjoin(settings: PeerSettings, streams: StreamSettings | None = None) -> Upper:
    """The protocols of a peer, above the ring."""

    if not settings.registered:
        # No registers and nothing lost: idle timers would take most of the time.
        streams = StreamSettings(issue_every_us=NEVER_US, tend_every_us=NEVER_US)

    def upper(chord: Chord, membership: Membership) -> Sequence[NodeProtocol]:
        spreading = QuerySpreading(chord)
        return [
            spreading,
            Streams(chord, membership, spreading, streams or StreamSettings()),
            Index(chord, membership, spreading, settings),
            Results() if settings.registered else Results(NEVER_US, 10 * SECOND_US),
        ]

    return upper
