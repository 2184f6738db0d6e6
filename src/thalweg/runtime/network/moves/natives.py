"""The fragments of a node as partners see them: whose they are, and where their neighbours run.

A fragment belongs to the stream whose rows come the fastest, and is native where that one is at
home (COSMOS 6.2.1: a join goes with its faster side). That is decided once, when rows have come,
and goes along with the fragment.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from thalweg.engine.shared.moving.export import movable
from thalweg.engine.shared.moving.manifest import CannotMove
from thalweg.engine.shared.state.names import state_owner, stem_stream
from thalweg.engine.site import Unknown
from thalweg.engine.site.publications import is_mirror, reader_of
from thalweg.plan.catalog import StreamDef
from thalweg.plan.nodes import base_streams
from thalweg.runtime.data.fragments import Fragment, digest, inlined, is_fragment, whole_reach
from thalweg.runtime.network.fragments.handing import epoch_of, native_note
from thalweg.runtime.network.fragments.publishing import note_of

if TYPE_CHECKING:
    from thalweg.runtime.network.node import Node

_STREAM, _FLOW = "stream", "flow"


@dataclass(frozen=True, slots=True)
class Native:
    """Nodes are known by the addresses of their protocols; "" is one that nobody knows."""

    name: str  # what people call it
    query: str
    state_bytes: float
    home: str
    neighbours_at: tuple[str, ...]
    has_moved: bool


class Natives:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._known: dict[str, Fragment] = {}  # by query: they do not change

    def all(self) -> list[Native]:
        """Those that could go to another node."""
        node, site = self._node, self._node.site
        names = [q.name for q in site.catalog.queries() if is_fragment(q.name)]
        self._known = {q: f for q, f in self._known.items() if q in names}
        if not names or node.moving is None:
            return []
        addresses = {n.name: n.address for n in node.directory.nodes()}
        sizes, homes, found = self._sizes(), node.planning.homes(), list[Native]()
        rates = node.meter.rows_per_s()
        for query in names:
            if node.moving.is_given(query):
                continue  # another node has it, and readers are to follow
            with suppress(Unknown, KeyError):  # it has just been dropped
                native = self._native(query, sizes, homes, rates, addresses)
                if native is not None:
                    found.append(_named_apart(native, found))
        return found

    def _native(
        self,
        query: str,
        sizes: Mapping[tuple[str, str | None], float],
        homes: Mapping[str, str],
        rates: Mapping[str, float],
        addresses: Mapping[str, str],
    ) -> Native | None:
        """Raises Unknown, KeyError if it is not there."""
        fragment, run = self.fragment(query), self._node.site.engine.roster.queries[query]
        is_whole = self.has_own_state(query)
        if fragment is None or (not is_whole and whole_reach(fragment) is None):
            return None  # neither its state can go, nor can it be computed anew
        home = self._home(query, fragment, homes, rates)
        near = self._neighbours(query, run.streams, home, homes)
        state = sizes.get((_FLOW, run.flow), 0.0)
        state += sum(sizes.get((_STREAM, s), 0.0) for s in run.streams)
        return Native(
            digest(fragment),
            query,
            state if is_whole else 0.0,
            addresses.get(home, ""),
            tuple(addresses.get(n, "") for n in near),
            epoch_of(query) > 0,
        )

    def fragment(self, query: str) -> Fragment | None:
        if query not in self._known:
            note = self._node.site.engine.store.note(note_of(query))
            if note is None:
                return None
            self._known[query] = msgspec.msgpack.decode(note, type=Fragment)
        return self._known[query]

    def has_own_state(self, query: str) -> bool:
        try:
            movable(self._node.site.engine, query)
        except CannotMove:
            return False
        return True

    def _sizes(self) -> dict[tuple[str, str | None], float]:
        """Bytes of state by stream and by flow, in one look."""
        found: dict[tuple[str, str | None], float] = {}
        for segment in list(self._node.site.engine.manifest):
            owner = state_owner(segment.table)
            key = (_STREAM, stem_stream(segment.table)) if owner is None else (_FLOW, owner[0])
            found[key] = found.get(key, 0.0) + segment.size
        return found

    # --- whose it is

    def _home(
        self,
        query: str,
        fragment: Fragment,
        homes: Mapping[str, str],
        rates: Mapping[str, float],
    ) -> str:
        """The name of the node that it is native to."""
        store = self._node.site.engine.store
        note = store.note(native_note(query))
        if note is not None:
            return note.decode()
        run = self._node.site.engine.roster.queries[query]
        streams = [(self._of(s), rates.get(s, 0.0)) for s in run.streams]
        base = [(homes[of], rate) for of, rate in streams if of in homes]
        if not base:
            below = base_streams(inlined(fragment))
            return next((homes[s.name] for s in below if s.name in homes), self._node.name)
        # Ties go to this node: it is where a plan has put it.
        at, rate = max(base, key=lambda b: (b[1], b[0] == self._node.name))
        if rate > 0:
            store.write_note(native_note(query), at.encode())
        return at

    def _stream(self, name: str) -> StreamDef:
        return self._node.site.stream(name)

    def _of(self, name: str) -> str:
        """What a mirror, whatever it is called here, is a mirror of."""
        return dict(self._stream(name).options).get("stream", name)

    def _neighbours(
        self, query: str, streams: tuple[str, ...], home: str, homes: Mapping[str, str]
    ) -> list[str]:
        """Where they run: fragments that it reads, filters at the homes of its other streams, and
        who reads it."""
        node, at = self._node, list[str]()
        own = False  # its own stream is no neighbour
        for name in streams:
            of = self._of(name)
            if of not in homes:
                if is_mirror(self._stream(name)):
                    at.append(node.mirrors.home(self._stream(name)))
            elif homes[of] == home and not own:
                own = True
            else:
                at.append(homes[of])
        return [*at, *(reader_of(r) for r in node.data.publications.sharers.of(query))]


def _named_apart(native: Native, others: list[Native]) -> Native:
    """Two of the same plan may stand beside each other: one of them has begun later."""
    same = sum(o.name.partition("/")[0] == native.name for o in others)
    return replace(native, name=f"{native.name}/{same + 1}") if same else native
