"""What nodes say to each other to place queries (SAND 4.2, figure 4), what is asked and told.

Figure 4's messages keep their names. MAP's leaf-to-root path comes with ADD_SUBTREE instead, once.
Visit is the OPERATOR_MAPPED and the MAP that a source gets from the proxy, in one. Added: Hosted
and Known, the answers that show who is there, and the four messages of measuring.
"""

from __future__ import annotations

import msgspec

from thalweg.overlay.protocol import Address, Message
from thalweg.overlay.sand.planning import Told
from thalweg.overlay.sand.query import TreeQuery
from thalweg.overlay.sand.zones import Zone

# --- messages to whoever coordinates a zone: they find their way through the overlay ---


class ForZone(Message, frozen=True):
    query: str
    zone: int  # its top; a source is a zone of its own, coordinated by its host (4.2)
    origin: Address
    hops: int


class AddSubtree(ForZone, frozen=True):
    """Place this zone, and go on doing so while this is said again."""

    subtree: Zone


class MapSubtree(ForZone, frozen=True):
    """MAP: the child can stand there, at these costs; None: it can't stand any more."""

    child: int
    told: Told | None
    stamp_us: int  # of the sender's clock: what comes late does not undo what came after it


class OperatorRemapped(ForZone, frozen=True):
    """Your top stands here. Not final while the zone above may still change its own mind."""

    location: Address
    taker: Address | None  # where the operator stands that takes it
    final: bool
    stamp_us: int


class InvalidateSubtree(ForZone, frozen=True):
    """INVALIDATE_MAP for a zone and all below it: the query has gone."""


# --- messages from node to node ---


class Visit(Message, frozen=True):
    """To a source, along the overlay's route, which it remembers (4.4)."""

    query: str
    source: int
    host: Address
    above: int  # the zone to which its MAP goes
    path: tuple[Address, ...]


class OperatorMapped(Message, frozen=True):
    """Run this operator, and go on doing so while this is said again."""

    query: str
    zone: int
    node: int
    inputs: tuple[tuple[int, Address], ...]
    taker: Address | None  # None: nobody knows yet, or (of the root) the user
    stamp_us: int


class Hosted(Message, frozen=True):
    query: str
    zone: int
    node: int
    rate_bps: float | None = None  # of what it gives, if that was measured here


class InvalidateMap(Message, frozen=True):
    """Don't run this operator any more."""

    query: str
    node: int
    stamp_us: int


class Known(Message, frozen=True):
    """To the proxy: who coordinates the zone, what stands against it, if anything; and once it is
    placed for good, where its operators and its boundary children stand."""

    query: str
    zone: int
    lacks: str
    stand: tuple[tuple[int, Address], ...] = ()


class Measure(Message, frozen=True):
    """How far are you from these?"""

    query: str
    zone: int
    targets: tuple[Address, ...]


class Probe(Message, frozen=True):
    query: str
    zone: int
    asker: Address
    stamp_us: int


class Echo(Message, frozen=True):
    query: str
    zone: int
    asker: Address
    stamp_us: int


class Measured(Message, frozen=True):
    query: str
    zone: int
    target: Address
    one_way_us: int


MESSAGES = (
    AddSubtree,
    MapSubtree,
    OperatorRemapped,
    InvalidateSubtree,
    Visit,
    OperatorMapped,
    Hosted,
    InvalidateMap,
    Known,
    Measure,
    Probe,
    Echo,
    Measured,
)


# --- requests, at the proxy ---


class PlaceQuery(msgspec.Struct, frozen=True):
    """Its name must be new in the whole network, for ever; its proxy is this node."""

    query: TreeQuery


class DropQuery(msgspec.Struct, frozen=True):
    query: str


class AskAgain(msgspec.Struct, frozen=True):
    """At the proxy: say now what would be said with the next renewal, and hear the answers."""

    query: str


class Observe(msgspec.Struct, frozen=True):
    """At the host of an operator or a source: so much it gives now (SAND 2.3, 3)."""

    query: str
    node: int
    rate_bps: float


# --- deliveries ---


class Placed(msgspec.Struct, frozen=True):
    """At the proxy: the whole tree stands."""

    query: str


class Stands(msgspec.Struct, frozen=True):
    """At the proxy, whenever it has changed: where all nodes of the tree stand, as all of its
    coordinators say, and who they are, by zone."""

    query: str
    at: tuple[Address, ...]
    coordinators: tuple[tuple[int, Address], ...]


class Waiting(msgspec.Struct, frozen=True):
    """At the proxy: what stands against it just now."""

    query: str
    why: str


class Refused(msgspec.Struct, frozen=True):
    query: str
    why: str


class Mapped(msgspec.Struct, frozen=True):
    """At a host: run it, with inputs from there, for the taker there."""

    query: str
    node: int
    inputs: tuple[tuple[int, Address], ...]
    taker: Address | None


class Unmapped(msgspec.Struct, frozen=True):
    query: str
    node: int


class Feed(msgspec.Struct, frozen=True):
    """At a source: where its stream goes; None: nowhere any more."""

    query: str
    source: int
    taker: Address | None
