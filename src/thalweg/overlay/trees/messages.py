"""What nodes of dissemination trees say to each other."""

from __future__ import annotations

import msgspec

from thalweg.overlay.protocol import Address, Message
from thalweg.overlay.trees.stream import Tree


class Report(msgspec.Struct, frozen=True):
    """What a node tells of itself and of all below it (COSMOS 4.2.2, information collection)."""

    weight: float  # W: rows a second, of all readers from here down
    below: float  # B: of those below
    own: tuple[int, ...]  # classes of the own reader
    classes: tuple[int, ...]  # from here down
    children: int
    sends: float  # rows a second to children
    filter_us: float
    send_us: float
    other_busy: float  # what it does in other trees
    other_rate: float
    other_below: float
    delays_us: tuple[tuple[Address, int], ...]  # to those under whom it might hang
    hop_us: float = 0.0  # that rows wait there, whoever is below; where it is measured


class Join(Message, frozen=True):
    """Take me as your child, with all that is below me."""

    tree: Tree
    serial: int


class Refuse(Message, frozen=True):
    """I can't: I am below you, or not sure of my own way to the home."""

    tree: Tree
    serial: int


class Beat(Message, frozen=True):
    """Parent to child: you hang here. The first one says that a Join was heard."""

    tree: Tree
    path: tuple[Address, ...]  # from the home to the sender's parent
    stamp: int  # the home's, which goes up with every beat of its own
    siblings: tuple[Address, ...]
    uncles: tuple[Address, ...]
    known: int  # the version of the child's report that the parent has


class Here(Message, frozen=True):
    """Child to parent, in answer; with a report where the parent's is old."""

    tree: Tree
    version: int
    report: Report | None
    kids: tuple[tuple[Address, Report], ...]


class Bye(Message, frozen=True):
    """The sender is no longer your child, or no longer your parent."""

    tree: Tree


class Token(Message, frozen=True):
    """You may adapt; and whoever held you is done (Algorithm 4.1)."""

    tree: Tree
    round: int


class Hold(Message, frozen=True):
    tree: Tree
    round: int
    number: int  # the sender's NUM


class Ack(Message, frozen=True):
    """Held. Statistics that changed since the last report come along (4.3.2)."""

    tree: Tree
    round: int
    version: int
    report: Report | None
    kids: tuple[tuple[Address, Report], ...]


class Rehang(Message, frozen=True):
    """Grandparent or parent to a node: change your publisher."""

    tree: Tree
    order: int
    to: Address


class Rehung(Message, frozen=True):
    tree: Tree
    order: int
    done: bool


class Ping(Message, frozen=True):
    stamp_us: int


class Pong(Message, frozen=True):
    stamp_us: int


ALL: tuple[type[Message], ...] = (
    Join,
    Refuse,
    Beat,
    Here,
    Bye,
    Token,
    Hold,
    Ack,
    Rehang,
    Rehung,
    Ping,
    Pong,
)
