"""Who is answered together: which queries form groups, and when members move.

Before a tick, and never within one:

1. Queries that have not run yet, of one signature and with one beginning, begin as one group.
2. Parts of one signature (groups, and queries that run alone) that have come to the same instant
   become one, if one of the groups can answer all: its group takes the others' members.
3. If none can, a new group is started that could. It runs from the SteMs' contents up to the
   present and answers nobody; then rule 2 moves everybody there.
4. If half of what a group computes, or more, is for members that have gone, a group is started
   that is narrowed to what its remaining members need.

A member's result does not show where it lives: up to the instant of the move the old part has said
everything, and from there on the new one does, whose rows that are still open are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.groups.aggregate_grouping import group_aggregates
from thalweg.engine.shared.groups.cost_model import Part
from thalweg.engine.shared.groups.members import window_classes
from thalweg.engine.shared.groups.regroup_actions import MOST_WINDOWS, RegroupActions
from thalweg.engine.shared.groups.running_group import (
    RunningGroup,
    core_of,
    knows_enough,
    will_be_known,
)
from thalweg.engine.shared.state.names import COMPUTED
from thalweg.plan import nodes
from thalweg.plan.expr import Call, walk
from thalweg.plan.windows import BEGINNING
from thalweg.sharing.core import Signature


def is_sharable(query: Run) -> bool:
    return query.normal is not None and not query.normal.above


def has_aggregates(query: Run) -> bool:
    return query.normal is not None and bool(query.normal.above)


def _is_part(query: Run) -> bool:
    """Whether it computes some buckets of an operator: these move, with a state of their own."""
    if query.plan is None or not query.name.startswith(COMPUTED):
        return False
    filters = (n.predicate for n in nodes.walk(query.plan) if isinstance(n, nodes.Filter))
    return any(isinstance(e, Call) and e.function == "bucket" for p in filters for e in walk(p))


@dataclass(frozen=True)
class _Offer:
    """Whom a group would take, whom it would leave, and which others would then be empty."""

    home: RunningGroup
    taken: list[Run]
    left: list[Run]
    emptied: list[RunningGroup]


def regroup(actions: RegroupActions) -> None:
    """One round."""
    roster, grouping = actions.roster, actions.grouping
    grouping.shrunk &= roster.groups.keys()
    # Who has replaced another says first what is different, by itself.
    alone = [
        q
        for q in roster.ungrouped().values()
        if q.replaces is None and q.name not in grouping.pinned and not _is_part(q)
    ]
    parts: dict[Signature, list[Run]] = {}
    for query in alone:
        if is_sharable(query):
            parts.setdefault(core_of(query).signature, []).append(query)
    with actions.store.transaction():
        group_aggregates(actions, [q for q in alone if has_aggregates(q)])
        for queries in parts.values():
            _begin_together(actions, [q for q in queries if not actions.has_run(q)])
        groups: dict[Signature, list[RunningGroup]] = {}
        for group in roster.groups.values():
            if not group.runs_aggregates:
                groups.setdefault(group.representative.signature, []).append(group)
        for signature in {**parts, **groups}:
            left = [q for q in parts.get(signature, []) if q.name not in roster.group_of]
            _merge(actions, groups.get(signature, []), left)
            _tighten(actions, groups.get(signature, []))


# --- rule 1 ---------------------------------------------------------------------------------------


def _begin_together(actions: RegroupActions, fresh: list[Run]) -> None:
    by_flow: dict[str, list[Run]] = {}
    for query in fresh:
        by_flow.setdefault(query.flow, []).append(query)
    for queries in by_flow.values():
        parts = [Part(core_of(q), None) for q in queries]
        is_few = len(window_classes(queries)) <= MOST_WINDOWS
        if len(queries) > 1 and is_few and actions.pays(parts):
            actions.settled = False
            first = queries[0]
            actions.move(queries, actions.start(queries, first))


# --- rules 2 and 3 --------------------------------------------------------------------------------


def _merge(actions: RegroupActions, groups: list[RunningGroup], alone: list[Run]) -> None:
    if len(groups) + len(alone) < 2:
        return
    now = max(actions.reached(q) for q in (*(g.run for g in groups), *alone))
    ready = [g for g in groups if actions.reached(g.run) == now]
    single = [q for q in alone if actions.reached(q) == now]
    if now == BEGINNING or len(ready) + len(single) < len(groups) + len(alone):
        actions.settled = False  # somebody is still on the way to the present
    if now == BEGINNING or len(ready) + len(single) < 2:
        return
    living = {g.name: actions.roster.members_of(g.name) for g in ready}
    left = _gather(actions, ready, single, living, now)
    is_coming = any(not actions.roster.members_of(g.name) for g in groups if g not in ready)
    if is_coming or not left:
        return
    stay = {m.name for m in left}
    others = [m for of in living.values() for m in of if m.name not in stay]
    horizons = actions.complete([*left, *others])
    together = [m for m in (*left, *others) if knows_enough(horizons, m, now)]
    if any(will_be_known(m) for m in (*left, *others) if m not in together):
        actions.settled = False  # what only some have seen will expire
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
        if names not in actions.grouping.tried and actions.pays(parts):
            actions.grouping.tried.add(names)  # once: what did not come about will not now
            actions.settled = False
            actions.start(together, None)


def _gather(
    actions: RegroupActions,
    ready: list[RunningGroup],
    alone: list[Run],
    living: dict[str, list[Run]],
    now: int,
) -> list[Run]:
    """Move to the ablest group whom it can take; gives those whom it cannot.

    Of several that are as able the tightest, then the largest, so that the fewest have to move.
    """
    if not ready:
        return alone

    def cost(offer: _Offer) -> tuple[int, int, int]:
        home = offer.home
        looser = sum(_is_looser(home, other) for other in ready)
        return len(offer.left), looser, -len(living[home.name])

    best = min((_offer(actions, home, ready, alone, living, now) for home in ready), key=cost)
    actions.move(best.taken, best.home)
    for other in best.emptied:
        actions.end(other)
    return best.left


def _offer(
    actions: RegroupActions,
    home: RunningGroup,
    ready: list[RunningGroup],
    alone: list[Run],
    living: dict[str, list[Run]],
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


def _is_looser(one: RunningGroup, other: RunningGroup) -> bool:
    wide, tight = one.representative, other.representative
    return wide.covers(tight.to_core()) and not tight.covers(wide.to_core())


# --- rule 4 ---------------------------------------------------------------------------------------


def _tighten(actions: RegroupActions, groups: list[RunningGroup]) -> None:
    roster = actions.roster
    standing = [g for g in groups if g.name in roster.groups]  # the others have just ended
    if not all(roster.members_of(g.name) for g in standing):
        return  # one is on its way already
    for group in standing:
        members = roster.members_of(group.name)
        if not actions.has_run(group.run) or not actions.is_too_loose(group, members):
            continue
        now, horizons = actions.reached(group.run), actions.complete(members)
        ignorant = [m for m in members if not knows_enough(horizons, m, now)]
        if not ignorant:
            actions.grouping.tried.add(frozenset(m.name for m in members))
            actions.start(members, None)
        if all(map(will_be_known, ignorant)):
            actions.settled = False  # there is somebody to move, now or when it has expired
