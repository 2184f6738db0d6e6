"""What is asked of `subscriptions`, what it delivers, and what nodes say about rows."""

from __future__ import annotations

import msgspec

from thalweg.overlay.protocol import Address, Message
from thalweg.overlay.trees.stream import Line, Spec, Tree

# --- requests and deliveries ---


class Offer(msgspec.Struct, frozen=True):
    tree: Tree


class Publish(msgspec.Struct, frozen=True):
    tree: Tree
    value: int


class Read(msgspec.Struct, frozen=True):
    tree: Tree
    spec: Spec


class Follow(msgspec.Struct, frozen=True):
    """Take the stream from this node from now on; None: from nobody."""

    tree: Tree
    publisher: Address | None


class Published(msgspec.Struct, frozen=True):
    tree: Tree
    lines: tuple[Line, ...]


class Wanted(msgspec.Struct, frozen=True):
    """This node reads the stream, as one of this class; `hints` are publishers to ask first."""

    tree: Tree
    klass: int
    begins: int
    hints: tuple[Address, ...] = ()


class Stands(msgspec.Struct, frozen=True):
    tree: Tree
    publisher: Address
    instant: int


# --- messages ---


class Open(Message, frozen=True):
    tree: Tree
    spec: Spec


class Opened(Message, frozen=True):
    tree: Tree
    spec: Spec
    klass: int
    begins: int


class Subscribe(Message, frozen=True):
    tree: Tree
    classes: tuple[int, ...]
    start: int  # all before it has been taken


class Rows(Message, frozen=True):
    tree: Tree
    classes: tuple[int, ...]  # whose rows these are, all of them
    start: int
    upto: int
    lines: tuple[Line, ...]


class Unsubscribe(Message, frozen=True):
    tree: Tree
