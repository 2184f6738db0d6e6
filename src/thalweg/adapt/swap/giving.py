"""Rows go: each gets one next site, is written down with it, and is sent."""

from __future__ import annotations

from collections import deque

from thalweg.adapt.swap.channels import Outgoing
from thalweg.adapt.swap.eddy import Eddy, MadeRow
from thalweg.adapt.swap.frontiers import leaving, on_link
from thalweg.adapt.swap.messages import SINK, Batch, Returned, Row, Taken
from thalweg.adapt.swap.policies.policy import Option
from thalweg.adapt.swap.sites import site_of
from thalweg.adapt.swap.state import SiteState
from thalweg.adapt.swap.stem import values_of
from thalweg.overlay.protocol import Address, Send
from thalweg.placement.swap.links import Link

MUCH = 1 << 30  # room where nothing is held back


def dispatch(state: SiteState) -> None:
    """Rows without a next site get one, those that are nearest to a result first."""
    for eddy in state.eddies.values():
        for footprint in sorted(eddy.pending, key=lambda f: (-f.bit_count(), f)):
            rows = eddy.pending[footprint]
            while rows and _route(state, eddy, footprint, rows):
                pass
            if not rows:
                del eddy.pending[footprint]
        for number, row in eddy.new.items():
            eddy.saved.add(number)
            state.write(f"wait/{eddy.node}/{number}", (row, eddy.parents.get(number, ())))
        eddy.new.clear()
        if eddy.next_number != eddy.written_number:
            eddy.written_number = eddy.next_number
            state.write(f"next/{eddy.node}", eddy.next_number)


def _route(state: SiteState, eddy: Eddy, footprint: int, rows: deque[Row]) -> bool:
    """Whether the next batch could go."""
    if footprint == state.query.plan.footprints.whole:
        while rows:
            _send(state, eddy, rows.popleft(), None)
        return True
    ways, stage = state.query.ways(eddy.node, footprint), footprint.bit_count()
    wanted = min(len(rows), state.settings.batch_rows)
    if len(ways) == 1:
        link, room = ways[0], _room(state, ways[0], stage)
        if room <= 0:
            return False
    else:
        options = [Option(way.target, _room(state, way, stage)) for way in ways]
        target = state.policies[eddy.node].choose(options, wanted, state.generator)
        if target is None:
            return False
        link, room = next(
            (way, o.room) for way, o in zip(ways, options, strict=True) if o.target == target
        )
    count = min(wanted, room)
    for _ in range(count):
        _send(state, eddy, rows.popleft(), link)
    way = (eddy.node, link.target)
    state.routed[way] = state.routed.get(way, 0) + count
    return True


def _room(state: SiteState, link: Link, stage: int) -> int:
    sites = state.query.plan.djg.nodes[link.target].sites
    return min(state.outs[link.source, link.target, a].room_for(stage) for a in sites)


def _send(state: SiteState, eddy: Eddy, row: Row, link: Link | None) -> None:
    target = SINK if link is None else link.target
    addresses = (state.query.sink,) if link is None else _addresses(state, link, row)
    for address in addresses:
        out = state.outs[eddy.node, target, address]
        place = out.append(row)
        state.write(f"out/{out.key}/{place}", row)
    if state.query.has_open_ends:
        parents = eddy.parents.pop(row.number)
        made = MadeRow(row.number, row.start, row.end, parents, target, addresses)
        eddy.remember_sent(made)
        state.write(f"made/{eddy.node}/{row.number}", made)
    if eddy.new.pop(row.number, None) is None or row.number in eddy.saved:
        eddy.saved.discard(row.number)
        state.erase(f"wait/{eddy.node}/{row.number}")


def _addresses(state: SiteState, link: Link, row: Row) -> tuple[Address, ...]:
    node = state.query.plan.djg.nodes[link.target]
    if not node.is_parallel or node.split_by is not None:
        return node.sites  # a node divided by one stream's place needs the others everywhere
    value = values_of(row.parts, link.stream)[node.key_column(link.stream)]
    return (site_of(value, node.sites),)


def flush(state: SiteState, *, all_channels: bool = False) -> None:
    """Send what is new; on a beat, say frontiers on every channel."""
    known: dict[int, dict[int, int]] = {}
    for out in state.outs.values():
        if out.sent >= out.last and not all_channels:
            continue
        if out.source not in known:
            known[out.source] = leaving(state, out.source)
        frontiers = on_link(state, out.source, out.target, known[out.source])
        _send_entries(state, out, frontiers)


def _send_entries(state: SiteState, out: Outgoing, frontiers: tuple[tuple[int, int], ...]) -> None:
    while True:
        first = out.sent + 1
        out.sent = min(out.last, out.sent + state.settings.batch_rows)
        entries = tuple([out.entries[n] for n in range(first, out.sent + 1)])
        is_last = out.sent == out.last
        batch = Batch(
            state.query.id,
            out.source,
            out.target,
            first,
            entries,
            out.last,
            frontiers if is_last else (),
        )
        state.effects.append(Send(out.address, batch))
        if is_last:
            return


def send_again(state: SiteState) -> None:
    """What was sent before the last beat and not answered since."""
    for out in state.outs.values():
        if out.acked == out.answered and out.entries:
            out.sent = out.acked
        out.answered = out.acked


# --- answers ---


def answer(state: SiteState, sender: Address, source: int, target: int) -> None:
    incoming = state.ins[source, target, sender]
    room = room_at(state, target)
    incoming.told_room = min(room)
    state.effects.append(
        Send(sender, Taken(state.query.id, source, target, incoming.received, room))
    )


def room_at(state: SiteState, node: int) -> tuple[int, ...]:
    """By the size of a footprint. Only rows with larger ones are in the way: those of the last size
    always go, so all do in the end, though sites send both ways."""
    count = len(state.query.plan.djg.nodes)
    if node == SINK:
        return (MUCH,) * count
    waiting = [0] * (count + 2)
    for footprint, rows in state.eddies[node].pending.items():
        waiting[footprint.bit_count()] += len(rows)
    room, above = [], 0
    for stage in range(count, 0, -1):
        above += waiting[stage + 1]
        room.append(max(0, state.settings.pending_rows - above))
    return tuple(reversed(room))


def tell_room(state: SiteState) -> None:
    """To those that were told that there is none."""
    for (source, target, address), incoming in state.ins.items():
        if incoming.told_room > 0 or target == SINK:
            continue
        if min(room_at(state, target)) >= (state.settings.pending_rows + 3) // 4:
            answer(state, address, source, target)


def report(state: SiteState) -> None:
    """Virtual tuples, once there are enough of them."""
    for (source, target, address), incoming in state.ins.items():
        if incoming.returned - incoming.reported >= state.settings.threshold_rows:
            incoming.reported = int(incoming.returned)
            message = Returned(state.query.id, source, target, state.life, incoming.reported)
            state.effects.append(Send(address, message))
