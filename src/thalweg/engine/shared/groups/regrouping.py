"""Who is answered together: which queries form groups, and when members move.

Before a tick, and never within one:

1. Queries that have not run yet, of one signature and with one beginning, begin as one group.
2. Parts of one signature (groups, and queries that run alone) that have come to the same instant
   become one, if one of the groups can answer all: its generation takes the others' members.
3. If none can, a new generation is started that could. It runs from the SteMs' contents up to the
   present and answers nobody; then rule 2 moves everybody there.
4. If half of what a group computes, or more, is for members that have gone, a generation is started
   that is as tight as those want who are left.

A member's result does not show where it lives: up to the instant of the move the old part has said
everything, and from there on the new one does, whose rows that are still open are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from thalweg.engine.shared.compile.planning import Registered
from thalweg.engine.shared.groups.aggregate_grouping import lift
from thalweg.engine.shared.groups.cost_model import Part
from thalweg.engine.shared.groups.members import window_classes
from thalweg.engine.shared.groups.regroup_actions import MOST_WINDOWS, Round
from thalweg.engine.shared.groups.running_group import Generation, core_of, is_finite, knows_enough
from thalweg.engine.shared.tick.task import BEGINNING
from thalweg.sharing.core import Signature

if TYPE_CHECKING:
    from thalweg.engine.shared.engine import SharedEngine


def is_sharable(query: Registered) -> bool:
    return query.normal is not None and not query.normal.above


def is_liftable(query: Registered) -> bool:
    return query.normal is not None and bool(query.normal.above)


@dataclass(frozen=True)
class _Offer:
    """Whom a generation would take, whom it would leave, and which others would then be empty."""

    home: Generation
    taken: list[Registered]
    left: list[Registered]
    emptied: list[Generation]


def regroup(engine: SharedEngine) -> Round:
    """One round over an engine, and what came of it."""
    round_ = Round(engine)
    engine.shrunk &= engine.generations.keys()
    alone = engine.homes.homeless(engine.queries).values()
    parts: dict[Signature, list[Registered]] = {}
    for query in alone:
        if is_sharable(query):
            parts.setdefault(core_of(query).signature, []).append(query)
    with engine.store.transaction():
        lift(round_, [q for q in alone if is_liftable(q)])
        for queries in parts.values():
            _begin_together(round_, [q for q in queries if not round_.has_run(q)])
        groups: dict[Signature, list[Generation]] = {}
        for generation in engine.generations.values():
            if not generation.is_lifted:
                groups.setdefault(generation.representative.signature, []).append(generation)
        for signature in {**parts, **groups}:
            left = [q for q in parts.get(signature, []) if q.name not in engine.homes]
            _merge(round_, groups.get(signature, []), left)
            _tighten(round_, groups.get(signature, []))
    return round_


# --- rule 1 ---------------------------------------------------------------------------------------


def _begin_together(round_: Round, fresh: list[Registered]) -> None:
    by_flow: dict[str, list[Registered]] = {}
    for query in fresh:
        by_flow.setdefault(query.flow, []).append(query)
    for queries in by_flow.values():
        parts = [Part(core_of(q), None) for q in queries]
        is_few = len(window_classes(queries)) <= MOST_WINDOWS
        if len(queries) > 1 and is_few and round_.pays(parts):
            round_.settled = False
            first = queries[0]
            round_.move(queries, round_.generation(queries, first))


# --- rules 2 and 3 --------------------------------------------------------------------------------


def _merge(round_: Round, groups: list[Generation], alone: list[Registered]) -> None:
    if len(groups) + len(alone) < 2:
        return
    now = max(round_.reached(q) for q in (*(g.run for g in groups), *alone))
    ready = [g for g in groups if round_.reached(g.run) == now]
    single = [q for q in alone if round_.reached(q) == now]
    if now == BEGINNING or len(ready) + len(single) < len(groups) + len(alone):
        round_.settled = False  # somebody is still on the way to the present
    if now == BEGINNING or len(ready) + len(single) < 2:
        return
    living = {g.name: round_.engine.members_of(g.name) for g in ready}
    left = _gather(round_, ready, single, living, now)
    is_coming = any(not round_.engine.members_of(g.name) for g in groups if g not in ready)
    if is_coming or not left:
        return
    stay = {m.name for m in left}
    others = [m for of in living.values() for m in of if m.name not in stay]
    horizons = round_.complete([*left, *others])
    together = [m for m in (*left, *others) if knows_enough(horizons, m, now)]
    if any(is_finite(m) for m in (*left, *others) if m not in together):
        round_.settled = False  # what only some have seen will expire
    if (
        len(together) > 1
        and any(m.name in stay for m in together)
        and len(window_classes(together)) <= MOST_WINDOWS
    ):
        parts = [
            *(Part(core_of(m), m.name) for m in alone if m in together),
            *(Part(g.representative.to_core(), g.name) for g in ready if living[g.name]),
        ]
        names = frozenset(m.name for m in together)
        if names not in round_.engine.tried and round_.pays(parts):
            round_.engine.tried.add(names)  # once: what did not come about will not now
            round_.settled = False
            round_.generation(together, None)


def _gather(
    round_: Round,
    ready: list[Generation],
    alone: list[Registered],
    living: dict[str, list[Registered]],
    now: int,
) -> list[Registered]:
    """Move to the ablest generation whom it can take; gives those whom it cannot.

    Of several that are as able the tightest, then the largest, so that the fewest have to move.
    """
    if not ready:
        return alone

    def cost(offer: _Offer) -> tuple[int, int, int]:
        home = offer.home
        looser = sum(_is_looser(home, other) for other in ready)
        return len(offer.left), looser, -len(living[home.name])

    best = min((_offer(round_, home, ready, alone, living, now) for home in ready), key=cost)
    round_.move(best.taken, best.home)
    for other in best.emptied:
        round_.end(other)
    return best.left


def _offer(
    round_: Round,
    home: Generation,
    ready: list[Generation],
    alone: list[Registered],
    living: dict[str, list[Registered]],
    now: int,
) -> _Offer:
    offer = _Offer(home, [], [], [])
    for query in alone:
        (offer.taken if home.covers(query, now) else offer.left).append(query)
    for other in (g for g in ready if g is not home):
        members = living[other.name]
        if home.covers_all_of(other) or all(home.covers(m, now) for m in members):
            offer.taken.extend(members)
            offer.emptied.append(other)
        else:  # as long as some have to stay, moving the others saves nothing
            offer.left.extend(members)
    return offer


def _is_looser(one: Generation, other: Generation) -> bool:
    wide, tight = one.representative, other.representative
    return wide.covers(tight.to_core()) and not tight.covers(wide.to_core())


# --- rule 4 ---------------------------------------------------------------------------------------


def _tighten(round_: Round, groups: list[Generation]) -> None:
    engine = round_.engine
    standing = [g for g in groups if g.name in engine.generations]  # the others have just ended
    if not all(engine.members_of(g.name) for g in standing):
        return  # one is on its way already
    for generation in standing:
        members = engine.members_of(generation.name)
        if not round_.has_run(generation.run) or not round_.is_too_loose(generation, members):
            continue
        now, horizons = round_.reached(generation.run), round_.complete(members)
        ignorant = [m for m in members if not knows_enough(horizons, m, now)]
        if not ignorant:
            engine.tried.add(frozenset(m.name for m in members))
            round_.generation(members, None)
        if all(map(is_finite, ignorant)):
            round_.settled = False  # there is somebody to move, now or when it has expired
