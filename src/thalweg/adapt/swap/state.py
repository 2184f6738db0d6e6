"""What a site has of one query: its nodes, their channels, and what of it is on disk.

On disk, under the query's id: `query`; `next` (a node's counter); `row` (stored rows); `wait`
(made, without a next site); `out` (entries that were not acknowledged: a row's one next site is
written down here, before it is sent) and `acked`; `in` (how many entries of a channel were taken);
`made` (rows whose end may still come); `home` (what was fed); at the sink `result`, `said`, `final`
(what nobody has taken yet) and `started` (sites that take part).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from thalweg.adapt.swap.channels import Channel, Incoming, Outgoing
from thalweg.adapt.swap.eddy import Eddy, MadeRow
from thalweg.adapt.swap.messages import SINK, Entry, Final, Row
from thalweg.adapt.swap.policies.named import policy_named
from thalweg.adapt.swap.policies.policy import Policy
from thalweg.adapt.swap.query import NEVER, SwapQuery
from thalweg.adapt.swap.settings import SwapSettings
from thalweg.adapt.swap.sink import Sink
from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import Address, Effect, Persist
from thalweg.placement.swap.links import Kind

encode = msgspec.msgpack.Encoder().encode
_decode_query = msgspec.msgpack.Decoder(SwapQuery).decode
_decode_row = msgspec.msgpack.Decoder(tuple[int, tuple[int, str, int], Row]).decode
_decode_wait = msgspec.msgpack.Decoder(tuple[Row, tuple[int, ...]]).decode
_decode_entry = msgspec.msgpack.Decoder(Entry).decode
_decode_made = msgspec.msgpack.Decoder(MadeRow).decode
_decode_result = msgspec.msgpack.Decoder(Row).decode
_decode_pair = msgspec.msgpack.Decoder(tuple[int, int]).decode
_decode_final = msgspec.msgpack.Decoder(Final).decode
_decode_sites = msgspec.msgpack.Decoder(list[Address]).decode


@dataclass(slots=True)
class Home:
    """A stream that is delegated here: all before `upto` was fed, up to key `last_key`."""

    upto: int = NEVER
    last_key: int = -1


@dataclass(slots=True)
class Lifecycle:
    """Who takes part, at the sink; and up to where streams are waited for."""

    started: dict[Address, None] = field(default_factory=dict)
    fed: dict[tuple[int, Address], int] = field(default_factory=dict)  # by stream and site
    demanded: int = NEVER  # of all streams, by who reads the results
    awaited: dict[int, int] = field(default_factory=dict)  # at a home, as the sink has told


@dataclass(slots=True)
class SiteState:
    query: SwapQuery
    own: Address
    settings: SwapSettings
    generator: Generator
    life: int
    eddies: dict[int, Eddy] = field(default_factory=dict)
    outs: dict[Channel, Outgoing] = field(default_factory=dict)
    ins: dict[Channel, Incoming] = field(default_factory=dict)
    policies: dict[int, Policy] = field(default_factory=dict)
    homes: dict[int, Home] = field(default_factory=dict)
    sink: Sink | None = None
    effects: list[Effect] = field(default_factory=list)
    moved: bool = False  # a frontier has, in this step
    routed: dict[tuple[int, int], int] = field(default_factory=dict)  # rows by link, this life
    kept: dict[str, None] = field(default_factory=dict)  # what is on disk
    lifecycle: Lifecycle = field(default_factory=Lifecycle)

    def __post_init__(self) -> None:
        plan = self.query.plan
        nodes, whole = plan.djg.nodes, plan.footprints.whole
        finishing = [n for n in range(len(nodes)) if whole in plan.footprints.made[n]]
        for number, node in enumerate(nodes):
            here = self.own in node.sites
            if here:
                self.eddies[number] = Eddy(self.query, number)
                asked = self.query.routing
                maker = policy_named(asked) if asked else self.settings.policy
                self.policies[number] = maker()
                self.homes |= {stream: Home() for stream in node.local}
                if number in finishing:
                    self._open_out(number, SINK, (self.query.sink,))
            for link in plan.links[number]:
                if here:
                    self._open_out(number, link.target, nodes[link.target].sites)
                if self.own in nodes[link.target].sites:
                    self._open_in(number, link.target, link.kind is Kind.RMO)
        if self.own == self.query.sink:
            self.sink = Sink(self.query)
            for number in finishing:
                self._open_in(number, SINK, False)

    def _open_out(self, source: int, target: int, addresses: tuple[Address, ...]) -> None:
        for address in addresses:
            channel = Outgoing(source, target, address, self.settings.window_rows)
            self.outs[source, target, address] = channel

    def _open_in(self, source: int, target: int, is_choice: bool) -> None:
        for address in self.query.plan.djg.nodes[source].sites:
            self.ins[source, target, address] = Incoming(
                source, target, address, is_choice=is_choice
            )

    # --- disk ---

    def write(self, key: str, value: object) -> None:
        self.kept[key] = None
        self.effects.append(Persist(f"{self.query.id}/{key}", encode(value)))

    def erase(self, key: str) -> None:
        self.kept.pop(key, None)
        self.effects.append(Persist(f"{self.query.id}/{key}", None))

    def restore(self, kept: Mapping[str, bytes]) -> None:
        """From the keys under the query's id."""
        self.kept |= dict.fromkeys(kept)
        for key in sorted(kept, key=_in_order):
            kind, *rest = key.split("/")
            value = kept[key]
            match kind:
                case "next":
                    self.eddies[int(rest[0])].next_number = msgspec.msgpack.decode(value)
                case "row":
                    stream, origin, row = _decode_row(value)
                    self.eddies[int(rest[0])].store(int(rest[1]), stream, row, origin)
                case "wait":
                    row, parents = _decode_wait(value)
                    eddy = self.eddies[int(rest[0])]
                    eddy.wait(row, parents)
                    eddy.saved.add(row.number)
                    eddy.new.clear()
                case "made":
                    self.eddies[int(rest[0])].remember_sent(_decode_made(value))
                case "acked":
                    out = self.outs[int(rest[0]), int(rest[1]), rest[2]]
                    out.acked = out.sent = out.last = msgspec.msgpack.decode(value)
                case "out":
                    out = self.outs[int(rest[0]), int(rest[1]), rest[2]]
                    out.last = int(rest[3])
                    out.entries[out.last] = _decode_entry(value)
                case "in":
                    incoming = self.ins[int(rest[0]), int(rest[1]), rest[2]]
                    incoming.received = msgspec.msgpack.decode(value)
                case "home":
                    self.homes[int(rest[0])] = Home(*_decode_pair(value))
                case "started":
                    self.lifecycle.started = dict.fromkeys(_decode_sites(value))
                case "final":
                    assert self.sink is not None
                    self.sink.untaken[int(rest[0])] = _decode_final(value)
                case "said" | "result":
                    assert self.sink is not None
                    if kind == "said":
                        self.sink.said = msgspec.msgpack.decode(value)
                    else:
                        key_of = (int(rest[0]), rest[1], int(rest[2]))
                        self.sink.put(key_of, _decode_result(value))

    def pending(self, node: int) -> dict[int, deque[Row]]:
        return self.eddies[node].pending


def restored_query(value: bytes) -> SwapQuery:
    return _decode_query(value)


_KINDS = (
    *("query", "next", "row", "wait", "made", "acked", "out", "in", "home", "said", "result"),
    *("final", "started"),
)


def _in_order(key: str) -> tuple[int, list[tuple[int, str]]]:
    """Kinds in the order in which they can be put back, numbers as numbers."""
    kind, *rest = key.split("/")
    return _KINDS.index(kind), [(int(r), "") if _is_number(r) else (-1, r) for r in rest]


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdigit()
