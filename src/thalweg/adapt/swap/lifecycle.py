"""A query begins at all of its sites, is kept going, and ends at all of them.

The sink has it first, on its disk, and says Start until each site has said that it runs. Sites go
on saying so; a sink that knows no such query answers that it has ended. So a query that is dropped
needs no list of who has heard it, and a Start that was late on its way makes nothing that stays.
"""

from __future__ import annotations

from thalweg.adapt.swap.messages import Awaited, Runs, Start, Took
from thalweg.adapt.swap.query import FOREVER, NEVER
from thalweg.adapt.swap.state import SiteState
from thalweg.overlay.protocol import Address, Send


def beat(state: SiteState) -> None:
    """At the sink, sites that have not begun are told to; the others tell the sink that they go
    on."""
    query = state.query
    fed = tuple((stream, home.upto) for stream, home in sorted(state.homes.items()))
    if state.own != query.sink:
        state.effects.append(Send(query.sink, Runs(query.id, fed)))
        return
    runs(state, state.own, fed)
    for site in query.sites:
        if site not in state.lifecycle.started:
            state.effects.append(Send(site, Start(query)))


def runs(state: SiteState, site: Address, fed: tuple[tuple[int, int], ...]) -> None:
    """At the sink: a site goes on; what is waited for of its streams, it is told."""
    life = state.lifecycle
    if site not in life.started:
        life.started[site] = None
        state.write("started", list(life.started))
    for stream, upto in fed:
        life.fed[stream, site] = upto
    behind = [(s, at) for s, upto in fed if upto < (at := _waited_for(state, s)) < FOREVER]
    if not behind:
        return
    if site == state.own:
        awaited(state, tuple(behind))
    else:
        state.effects.append(Send(site, Awaited(state.query.id, tuple(behind))))


def _waited_for(state: SiteState, stream: int) -> int:
    """Up to which instant all others have come."""
    reached = []
    for other, sites in enumerate(state.query.annotated.delegated):
        if other != stream:
            reached += [state.lifecycle.fed.get((other, site), NEVER) for site in sites]
    return max(min(reached), state.lifecycle.demanded)


def awaited(state: SiteState, upto: tuple[tuple[int, int], ...]) -> None:
    """At a home: it may have something to promise."""
    for stream, instant in upto:
        known = state.lifecycle.awaited.get(stream, NEVER)
        state.lifecycle.awaited[stream] = max(known, instant)


def take(state: SiteState, request: Took) -> None:
    if state.sink is None:
        return
    for upto in [u for u in state.sink.untaken if u <= request.upto]:
        del state.sink.untaken[upto]
        state.erase(f"final/{upto}")


def end(state: SiteState) -> None:
    """Nothing of it stays."""
    for key in list(state.kept):
        state.erase(key)
    state.erase("query")
