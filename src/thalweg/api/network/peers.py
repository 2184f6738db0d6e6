"""Statements for a node among peers, and what it tells of its part."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thalweg.cql import Script
from thalweg.engine.site import WrongUse
from thalweg.runtime.network.node import Node
from thalweg.runtime.peers.definitions import name_of
from thalweg.runtime.peers.node import PeerNode


@dataclass(frozen=True, slots=True)
class AmongPeers:
    """Executes statements one by one."""

    node: PeerNode
    eager: bool

    def execute(self, text: str, *, name: str, folder: Path | None) -> Script:
        return self.node.execute(text, name=name, folder=folder, eager=self.eager)


def running(node: Node | None, eager: bool) -> Node | AmongPeers | None:
    """Who executes statements; None: the site itself. Raises WrongUse."""
    if isinstance(node, PeerNode):
        return AmongPeers(node, eager)
    if eager:
        raise WrongUse("results at once are what peers give: start nodes with --mode p2p for that")
    return node


def role(node: Node) -> dict[str, Any] | None:
    """What a node does for its peers."""
    if not isinstance(node, PeerNode):
        return None
    told = node.peers.role()
    for ids in ("sources", "queries", "registers"):
        told[ids] = [name_of(x) for x in told[ids]]
    for nodes in ("partners", "copied_to"):
        told[nodes] = [node.named(a) for a in told[nodes]]
    return told
