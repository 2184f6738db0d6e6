"""What a node knows of the network: the nodes, and who has which definition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import msgspec

from thalweg.plan.engines import NO_ENGINE, SHARED

STREAM, RELATION, TABLE, VIEW, QUERY, SINK = "stream", "relation", "table", "view", "query", "sink"
FED = (STREAM, RELATION, TABLE)  # what has a home


class NodeInfo(msgspec.Struct, frozen=True):
    """A node, and how to reach it."""

    name: str
    address: str  # of its protocols
    http: str  # a URL
    data: str  # of its publications, host:port
    site: str = "here"
    engine: str = SHARED

    @property
    def only_passes_on(self) -> bool:
        """A broker: it has no streams and no queries of its own."""
        return self.engine == NO_ENGINE


class Defined(msgspec.Struct, frozen=True):
    """A definition, and the node that has it: a stream's home, the node that runs a query."""

    name: str  # by which the network knows it
    kind: str
    text: str
    node: str
    own_name: str = ""  # by which its node itself knows it, if another one has that name

    @property
    def is_renamed(self) -> bool:
        """Another definition of its name was there first: it is `name@node`."""
        return bool(self.own_name)

    @property
    def name_there(self) -> str:
        return self.own_name or self.name


class NotKnown(Exception):
    """A node that nobody has told of."""


class Directory(Protocol):
    """All nodes have the same one, sooner or later. May be asked from any thread."""

    @property
    def me(self) -> NodeInfo: ...

    def nodes(self) -> list[NodeInfo]:
        """All that were ever heard of, in order of name."""

    def is_up(self, node: str) -> bool: ...

    def defined(self) -> Mapping[str, Defined]:
        """By lower-cased name."""

    def change(self, had: Iterable[tuple[str, str, str]], gone: Iterable[str] = ()) -> None:
        """This node has these (name, kind, text), and has those no more; durable when it
        returns."""

    def forget(self, node: str) -> None:
        """A node is gone for good, with all that it had. Raises WrongUse while it is up."""

    def leave(self) -> None:
        """This node goes, and has nothing any more."""

    def on_gone(self, listener: Callable[[str], None]) -> None:
        """Called, on any thread, with the name of a node that has left or is forgotten."""


def node_of(directory: Directory, name: str) -> NodeInfo:
    for node in directory.nodes():
        if node.name == name:
            return node
    raise NotKnown(f"there is no node {name} in the network as {directory.me.name} knows it")
