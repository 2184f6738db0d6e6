"""Which streams of peers stand, as the catalogue says; what is left of others goes.

A register is made before its stream is defined, and a node may hear of a stream late. So only what
was heard of and then dropped goes, and not while a query reads it.
"""

from __future__ import annotations

from thalweg.cql import compile_script
from thalweg.overlay.catalogue import Catalogue, Changed, Entry
from thalweg.overlay.catalogue.entry import Key
from thalweg.overlay.stack import Stack
from thalweg.runtime.peers.definitions import is_peers_stream, stream_id
from thalweg.runtime.peers.peers import Peers


class Standing:
    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._ids: dict[Key, str] = {}
        self._dropped: set[str] = set()  # some still read them
        peers.on("catalogue", self._changed)
        for entry in peers.read(_entries):
            self._learn(entry)

    def _changed(self, told: object) -> None:
        if not isinstance(told, Changed):
            return
        if not told.entry.dropped:
            self._learn(told.entry)
        elif (id_ := self._ids.pop(told.entry.key, None)) is not None:
            self._dropped.add(id_)
        for id_ in sorted(self._dropped):
            if not self._peers.readers(id_):
                self._dropped.discard(id_)
                self._peers.end(id_)

    def _learn(self, entry: Entry) -> None:
        if entry.kind == "stream" and entry.text:
            for stream in compile_script(entry.text).catalog.streams():
                if is_peers_stream(stream):
                    self._ids[entry.key] = stream_id(stream)


def _entries(stack: Stack) -> list[Entry]:
    catalogue = stack["catalogue"]
    assert isinstance(catalogue, Catalogue)
    return catalogue.entries()
