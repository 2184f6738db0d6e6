"""What nodes of the coordinator tree say to each other. `level` is that of a cluster, from 0 up."""

from __future__ import annotations

from thalweg.overlay.protocol import Address, Message

UNKNOWN = -1  # a distance


class Heartbeat(Message, frozen=True):
    """Leader to member: you are one of these. The first one says that a Join was heard."""

    level: int
    members: tuple[Address, ...]
    deputy: Address | None  # who leads if the leader is lost
    above: tuple[Address, ...]  # where the deputy then finds the level above; () at the top
    root: Address
    replaces: Address | None  # the leader whose cluster this was


class Here(Message, frozen=True):
    """Member to leader, in answer: alive, and this far from the others."""

    level: int
    distances_us: tuple[tuple[Address, int], ...]


class NotYours(Message, frozen=True):
    """I am not in the cluster of this level that you think I am in, or do not lead it."""

    level: int


class Ask(Message, frozen=True):
    """A root that looks for the tree to join: who is below you at this level? None: who is root?"""

    level: int | None
    height: int  # of the tree under the asking root


class Below(Message, frozen=True):
    """In answer: the cluster of this level. Without members: ask the root instead."""

    level: int
    members: tuple[Address, ...]
    root: Address
    height: int  # of the tree under `root`, if the sender is that


class Join(Message, frozen=True):
    """Take me into the cluster that you lead at this level, with all that is below me."""

    level: int


class Bye(Message, frozen=True):
    """I leave the cluster of this level, or the network."""

    level: int


class Promote(Message, frozen=True):
    """Lead from now on: these clusters, from `level` upwards, under this parent."""

    level: int
    clusters: tuple[tuple[Address, ...], ...]
    parent: Address | None


class Merge(Message, frozen=True):
    """Lead my cluster too: I no longer do."""

    level: int
    members: tuple[Address, ...]


class Absorb(Message, frozen=True):
    """Give me your cluster of this level: mine has become too small."""

    level: int


class Ping(Message, frozen=True):
    stamp_us: int


class Pong(Message, frozen=True):
    stamp_us: int


ALL: tuple[type[Message], ...] = (
    Heartbeat,
    Here,
    NotYours,
    Ask,
    Below,
    Join,
    Bye,
    Promote,
    Merge,
    Absorb,
    Ping,
    Pong,
)
