"""Rows come: they are stored and numbered, meet others, end, and go when nobody can need them."""

from __future__ import annotations

import msgspec

from thalweg.adapt.swap.eddy import Eddy, Origin
from thalweg.adapt.swap.frontiers import lowest, of_results
from thalweg.adapt.swap.messages import SINK, Accepted, Batch, Closing, End, Feed, Row
from thalweg.adapt.swap.query import Value
from thalweg.adapt.swap.sites import site_of
from thalweg.adapt.swap.state import SiteState
from thalweg.overlay.protocol import Address, Deliver

HALF_ROWS = 100  # so many rows later, a virtual tuple counts half


def feed(state: SiteState, request: Feed) -> None:
    home = state.homes.get(request.stream)
    if home is None:
        raise ValueError(f"stream {request.stream} of {request.query} is not delegated here")
    eddy = _eddy_of(state, request.stream)
    new = tuple([t for t in request.tuples if t[0] > home.last_key])
    for _, instant, values in new:  # all is checked before any of it counts
        _check_tuple(state, eddy, request.stream, instant, values)
    for key, instant, values in new:
        home.last_key = key
        end = state.query.end(request.stream, instant)
        row = Row(key, instant, end, 0, ((request.stream, values),))
        arrive(state, eddy, request.stream, row, (-1 - request.stream, state.own, key))
    if request.upto > home.upto:
        home.upto = request.upto
        state.moved = True
    state.write(f"home/{request.stream}", (home.upto, home.last_key))
    state.effects.append(Deliver(Accepted(msgspec.structs.replace(request, tuples=new))))


def end(state: SiteState, request: End) -> None:
    home = state.homes.get(request.stream)
    if home is None or state.query.windows[request.stream] is not None:
        raise ValueError(f"rows of stream {request.stream} of {request.query} can't be ended here")
    if request.at < home.upto:
        raise ValueError(f"instant {request.at} is behind {home.upto}, which was said already")
    origin = (-1 - request.stream, state.own, request.key)
    close(state, _eddy_of(state, request.stream), origin, request.at)
    state.effects.append(Deliver(Accepted(request)))


def _eddy_of(state: SiteState, stream: int) -> Eddy:
    return state.eddies[state.query.plan.djg.home[stream]]


def _check_tuple(
    state: SiteState, eddy: Eddy, stream: int, instant: int, values: tuple[Value, ...]
) -> None:
    """A part of a stream that is divided by buckets has the tuples of its own buckets only."""
    upto, node = state.homes[stream].upto, eddy.sub_query
    if instant < upto:
        raise ValueError(f"instant {instant} is behind {upto}, which was said already")
    if node.is_parallel and node.edges and node.split_by is None:
        value = values[node.key_column(stream)]
        if site_of(value, node.sites) != state.own:
            raise ValueError(f"{value!r} belongs to {site_of(value, node.sites)}, not here")


def take(state: SiteState, sender: Address, batch: Batch) -> bool:
    """Whether this site has such a channel."""
    incoming = state.ins.get((batch.source, batch.target, sender))
    if incoming is None:
        return False
    new = incoming.new_entries(batch.first, batch.entries)
    if new:
        incoming.received += len(new)
        state.write(f"in/{incoming.key}", incoming.received)
        if batch.target == SINK:
            _take_results(state, sender, batch.source, new)
        else:
            eddy = state.eddies[batch.target]
            eddy.fade()
            stream = _stream(state, batch.source, batch.target)
            for entry in new:
                origin = (batch.source, sender, entry.number)
                if type(entry) is Row:
                    incoming.newest = max(incoming.newest, entry.number)
                    arrive(state, eddy, stream, entry, origin)
                else:
                    assert isinstance(entry, Closing)
                    close(state, eddy, origin, entry.at)
    moved = incoming.catch_up()
    if incoming.hear_frontiers(batch.needs, batch.frontiers) or moved:
        state.moved = True
    return True


def _stream(state: SiteState, source: int, target: int) -> int:
    return next(x.stream for x in state.query.plan.links[source] if x.target == target)


def arrive(state: SiteState, eddy: Eddy, stream: int, row: Row, origin: Origin) -> None:
    """Building and probing are one step: who came before is met, who comes later meets."""
    number = eddy.number()
    if not eddy.sub_query.edges:
        eddy.wait(_passed_on(eddy, row), (number,))
        if not state.query.has_open_ends:
            return
    else:
        for made, parents in eddy.made_with(stream, number, row):
            eddy.wait(made, parents)
            for parent in parents:
                _count(state, eddy, origin if parent == number else eddy.came[parent][1])
    eddy.store(number, stream, row, origin)
    state.write(f"row/{eddy.node}/{number}", (stream, origin, row))


def _passed_on(eddy: Eddy, row: Row) -> Row:
    return Row(eddy.number(), row.start, row.end, 1 << eddy.node, row.parts)


def _count(state: SiteState, eddy: Eddy, origin: Origin) -> None:
    """A row was made of what this channel brought: a virtual tuple for the RMO at its other end.

    It counts less if what it was made of came long ago: the RMO has forgotten that, and would take
    it for what its rows of now give. (A stream that is read in at the start meets many old rows.)
    """
    source, address, number = origin
    if source >= 0:
        incoming = state.ins[source, eddy.node, address]
        if incoming.is_choice:
            incoming.returned += 0.5 ** ((incoming.newest - number) / HALF_ROWS)


# --- ends ---


def close(state: SiteState, eddy: Eddy, origin: Origin, at: int) -> None:
    """A row ends earlier than was known; so does all that was made of it, wherever it went."""
    number = eddy.origins.get(origin)
    row = eddy.stored(number) if number is not None else None
    if number is None or row is None or row.end <= at:
        return
    for made in list(eddy.made_of.get(number, ())):
        _close_made(state, eddy, made, at)
    if at <= row.start:
        _forget(state, eddy, number)
        return
    stream, _ = eddy.came[number]
    ended = msgspec.structs.replace(row, end=at)
    eddy.stems[stream].put(number, ended)
    eddy.expect_end(number, at)
    state.write(f"row/{eddy.node}/{number}", (stream, origin, ended))


def _close_made(state: SiteState, eddy: Eddy, number: int, at: int) -> None:
    made = eddy.sent.get(number)
    if made is None:
        _close_pending(state, eddy, number, at)
    elif at < made.end:
        for address in made.addresses:
            out = state.outs[eddy.node, made.target, address]
            place = out.append(Closing(number, at))
            state.write(f"out/{out.key}/{place}", out.entries[place])
        if at <= made.start:
            _forget(state, eddy, number)
        else:
            made.end = at
            eddy.expect_end(number, at)
            state.write(f"made/{eddy.node}/{number}", made)


def _close_pending(state: SiteState, eddy: Eddy, number: int, at: int) -> None:
    for rows in eddy.pending.values():
        for place, row in enumerate(rows):
            if row.number != number or row.end <= at:
                continue
            if at <= row.start:
                del rows[place]
                eddy.drop_pending(row)
                if number in eddy.saved:
                    eddy.saved.discard(number)
                    state.erase(f"wait/{eddy.node}/{number}")
                eddy.new.pop(number, None)
            else:
                rows[place] = ended = msgspec.structs.replace(row, end=at)
                eddy.new[number] = ended
            return


def purge(state: SiteState) -> None:
    """A row goes when no frontier is before its end: no partner and no `-` can come any more."""
    for node, eddy in state.eddies.items():
        for number in list(eddy.is_over(lowest(state, node))):
            _forget(state, eddy, number)


def _forget(state: SiteState, eddy: Eddy, number: int) -> None:
    stored, sent = eddy.forget(number)
    if stored:
        state.erase(f"row/{eddy.node}/{number}")
    if sent:
        state.erase(f"made/{eddy.node}/{number}")


# --- results ---


def _take_results(
    state: SiteState, sender: Address, source: int, new: tuple[Row | Closing, ...]
) -> None:
    sink = state.sink
    assert sink is not None
    for entry in new:
        key = (source, sender, entry.number)
        name = f"result/{source}/{sender}/{entry.number}"
        if isinstance(entry, Row):
            sink.arrived += 1
            shown = sink.shown(entry)
            if shown is not None:
                sink.put(key, shown)
                state.write(name, shown)
        else:
            left = sink.close(key, entry.at)
            if left is None:
                state.erase(name)
            else:
                state.write(name, left)


def say(state: SiteState) -> None:
    """What is final now."""
    if state.sink is None:
        return
    final, gone = state.sink.say(of_results(state))
    if final is None:
        return
    for source, address, number in gone:
        state.erase(f"result/{source}/{address}/{number}")
    state.write("said", state.sink.said)
    if state.settings.managed and final.changes:
        state.sink.untaken[final.upto] = final
        state.write(f"final/{final.upto}", final)
    state.effects.append(Deliver(final))
