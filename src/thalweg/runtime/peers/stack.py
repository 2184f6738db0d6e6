"""The protocols of a peer: those of every node, a ring, spreading of queries, and DHTJoin's."""

from __future__ import annotations

from thalweg.overlay.catalogue import Catalogue
from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.chord.settings import Settings as ChordSettings
from thalweg.overlay.gossip import Gossip, GossipTimes
from thalweg.overlay.membership import Membership
from thalweg.overlay.p2p.index import Index
from thalweg.overlay.p2p.peer import PeerSettings
from thalweg.overlay.p2p.results import Results
from thalweg.overlay.p2p.stems import OLDEST
from thalweg.overlay.p2p.streams import Streams, StreamSettings
from thalweg.overlay.query_spreading import QuerySpreading
from thalweg.overlay.stack import Stack

_MS, _SECOND = 1_000, 1_000_000

RING = ChordSettings(
    stabilise_every_us=500 * _MS,
    fix_finger_every_us=500 * _MS,
    find_self_every_us=3 * _SECOND,
    alone_after_us=4 * _SECOND,  # a network that was stopped finds together again
)
GOSSIP = GossipTimes(floor_us=2 * _SECOND, ceiling_us=10 * _SECOND, settle_us=300 * _MS)
STREAMS = StreamSettings(issue_every_us=100 * _MS, tend_every_us=2 * _SECOND)
WATCH_EVERY_US = 500 * _MS


OVERLOADED = 0.9  # of a node's room: then partners are looked for (DHTJoin 5.4)


def peer_settings(
    copies: int, room: int | None = None, shedding: str | None = None
) -> PeerSettings:
    """`room` is for so many tuples of a stream; beyond it partners help out, and in the end tuples
    are shed."""
    return PeerSettings(
        copies=copies,
        report_every_us=100 * _MS,
        retry_every_us=_SECOND,
        claim_every_us=500 * _MS,
        room=room,
        shedding=shedding or OLDEST,
        overloaded=None if room is None else OVERLOADED,
    )


def peer_stack(settings: PeerSettings) -> Stack:
    membership = Membership()
    chord = Chord(membership, RING)
    spreading = QuerySpreading(chord)
    return Stack(
        [
            membership,
            Catalogue(membership),
            chord,
            spreading,
            Gossip(chord, spreading, GOSSIP),
            Streams(chord, membership, spreading, STREAMS),
            Index(chord, membership, spreading, settings),
            Results(WATCH_EVERY_US, keeps=True),
        ]
    )
