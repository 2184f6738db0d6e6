"""Protocols know nodes by addresses, people and plans by names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from thalweg.engine.site import SiteError
from thalweg.overlay.protocol import Address
from thalweg.runtime.network.directory import Directory


class Names:
    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def addresses(self, names: Iterable[str]) -> list[Address]:
        """Raises SiteError."""
        known = {n.name: n.address for n in self._directory.nodes()}
        return [_of(known, name) for name in names]

    def names(self, addresses: Iterable[Address]) -> list[str]:
        """Raises SiteError."""
        known = {n.address: n.name for n in self._directory.nodes()}
        return [_of(known, address) for address in addresses]

    def shown(self, address: Address) -> str:
        """For people: of one that is not known any more, the address."""
        known = {n.address: n.name for n in self._directory.nodes()}
        return known.get(address, f"a node that is forgotten ({address})")

    def in_words(self, text: str) -> str:
        """What a protocol says, which knows nodes by their addresses."""
        for node in self._directory.nodes():
            text = re.sub(rf"(?<![\w.-]){re.escape(node.address)}(?![\w-])", node.name, text)
        return text


def _of(known: dict[str, str], wanted: str) -> str:
    if wanted not in known:
        raise SiteError(f"node {wanted} is not known here any more")
    return known[wanted]
