"""Which queries with aggregates run as one, and when they move.

The members of such a group are fixed when it begins, because its state is theirs. What comes later
is brought together in steps, as in a log-structured store:

1. Queries that have not run yet, alike and with one beginning, begin as one.
2. When parts (groups, and queries that run alone) are together as many as the next larger one,
   a new group of all of them is started. It runs from the SteMs' contents up to the present
   and answers nobody; a query moves so only a logarithmic number of times.
3. When it has come to the same instant as all its members, they move there.
4. When half of a group's members, or more, have gone, or half of what it computes is for
   these, the rest begins anew in the same way.

What an aggregate says follows from what is in its windows. So nothing changes by a move, once the
windows have outlived everything that the old run has seen and the new one has not. What the new one
has seen and the old one has not does not count there: every member has its own horizons. Without
GROUP BY there is also a row that outlives its tuples, which is carried along (`lasting_rows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.groups import lasting_rows as lasting_rows
from thalweg.engine.shared.groups.cost_model import Part
from thalweg.engine.shared.groups.member_aggregates import paned_window
from thalweg.engine.shared.groups.members import aggregate_key, window_classes
from thalweg.engine.shared.groups.regroup_actions import MOST_WINDOWS, RegroupActions
from thalweg.engine.shared.groups.running_group import RunningGroup, core_of, is_finite
from thalweg.plan.windows import BEGINNING, TimeWindow


@dataclass(frozen=True)
class _Part:
    """Queries that are answered by one run: one alone, or those of a group."""

    run: Run
    members: list[Run]
    group: RunningGroup | None = None

    @property
    def as_measured(self) -> Part:
        if self.group is None:
            return Part(core_of(self.run), self.run.name)
        return Part(self.group.representative.to_core(), self.group.name)


def group_aggregates(actions: RegroupActions, alone: Iterable[Run]) -> None:
    """All rules; `alone` are the queries with aggregates that live in no group."""
    new, running = [], []
    for query in alone:
        (running if actions.has_run(query) else new).append(query)
    _begin_together(actions, new)
    if any(q.name not in actions.roster.group_of for q in new):
        actions.settled = False  # once they have run, they may find others
    for home in [g for g in actions.roster.groups.values() if g.runs_aggregates]:
        if not actions.roster.members_of(home.name):
            _move_in(actions, home)
    _start_larger_ones(actions, [q for q in running if q.name not in actions.roster.group_of])


def _begin_together(actions: RegroupActions, new: list[Run]) -> None:
    by_kind: dict[tuple[object, ...], list[Run]] = {}
    for query in new:
        by_kind.setdefault((query.flow, *aggregate_key(query)), []).append(query)
    for members in by_kind.values():
        if len(members) < 2 or _have_panes_in_common(members):
            continue
        if len(window_classes(members)) <= MOST_WINDOWS:
            actions.move(members, actions.start(members, members[0], runs_aggregates=True))


def _move_in(actions: RegroupActions, home: RunningGroup) -> None:
    """A group that answers nobody yet gets its members, or is not needed any more."""
    roster = actions.roster
    assert home.family is not None
    # A query that was dropped and came again under its name is not the one that was meant.
    standing = [roster.queries[m] for m in home.family.members if m in roster.queries]
    members = [m for m in standing if m.epoch < home.run.epoch]
    if any(m.name in actions.grouping.pinned for m in members):
        actions.settled = False
        return
    if not any(m.name in roster.group_of for m in members) and len(members) < 2:
        actions.end(home)
        return
    runs = [run for m in members if (run := roster.run_of(m.name)) is not None]
    now, horizons = actions.reached(home.run), dict(home.run.horizons)
    if any(actions.reached(run) != now for run in runs) or not all(
        history_expired(horizons, m, now) for m in members
    ):
        actions.settled = False
        return
    left = {roster.group_of[m.name] for m in members if m.name in roster.group_of}
    lasting_rows.copy_markers(actions, members, home)
    actions.move(members, home)
    for name in left:
        if not roster.members_of(name):
            actions.end(roster.groups[name])


def _start_larger_ones(actions: RegroupActions, running: list[Run]) -> None:
    roster = actions.roster
    by_kind: dict[tuple[object, ...], list[_Part]] = {}
    coming: set[str] = set()
    for query in running:
        by_kind.setdefault(aggregate_key(query), []).append(_Part(query, [query]))
    for group in [g for g in roster.groups.values() if g.runs_aggregates]:
        members = roster.members_of(group.name)
        if members and actions.has_run(group.run):
            part = _Part(group.run, members, group)
            by_kind.setdefault(aggregate_key(members[0]), []).append(part)
        elif not members and group.family is not None:
            coming.update(group.family.members)
    for parts in by_kind.values():
        is_one_query = len(parts) == 1 and parts[0].group is None
        if not is_one_query and not any(m.name in coming for p in parts for m in p.members):
            _start_larger(actions, parts)


def _start_larger(actions: RegroupActions, parts: list[_Part]) -> None:
    now = max(actions.reached(p.run) for p in parts)
    ready = [p for p in parts if actions.reached(p.run) == now]
    chosen = select_for_merge(sorted(ready, key=lambda p: len(p.members)))
    if len(ready) < len(parts):
        actions.settled = False  # somebody is still on the way to the present
    if len(chosen) < 2:
        chosen = [p for p in ready if p.group and actions.is_too_loose(p.group, p.members)]
        del chosen[1:]
    if not chosen:
        return
    members = [m for p in chosen for m in p.members]
    assert members[0].normal is not None
    if _have_panes_in_common(members) or not lasting_rows.can_copy_markers(members[0].normal.above):
        return
    horizons = actions.complete(members)
    # Of partial aggregates none are made of what is past: a new home waits until it is gone.
    paned = paned_window(core_of(members[0]), members[0].normal.above)
    waits_there = paned is not None and paned.window.length is not None
    if not waits_there and not all(history_expired(horizons, m, now) for m in members):
        if all(map(is_finite, members)):
            actions.settled = False  # what only some have seen will leave their windows
        return
    names = frozenset(m.name for m in members)
    if len(window_classes(members)) > MOST_WINDOWS or names in actions.grouping.tried:
        return
    if len(chosen) == 1 or actions.pays([p.as_measured for p in chosen]):
        actions.grouping.tried.add(names)
        actions.settled = False
        actions.start(members, None, runs_aggregates=True)


def _have_panes_in_common(members: Sequence[Run]) -> bool:
    """Sliding windows over the same tuples: partial aggregates serve them better (`panes`)."""
    cores = [core_of(m) for m in members]
    return len({(c.ranges, c.residuals) for c in cores}) == 1 and any(
        w.slide > 1 for w in cores[0].windows
    )


def select_for_merge(parts: Sequence[_Part]) -> list[_Part]:
    """From the smallest on, as long as what there is so far is as large as what comes."""
    chosen: list[_Part] = []
    count = 0
    for part in parts:
        if chosen and len(part.members) > count:
            break
        chosen.append(part)
        count += len(part.members)
    return chosen


def history_expired(horizons: Mapping[str, int], member: Run, frontier: int) -> bool:
    """Whether a run from these horizons has all the member's tuples in its windows from the instant
    before `frontier` on: what is said at `frontier` is what changes there."""
    core, own = core_of(member), dict(member.horizons)

    def same(stream: str, window: TimeWindow) -> bool:
        here, there = horizons.get(stream, BEGINNING), own.get(stream, BEGINNING)
        # The last tuple that was not seen must be gone.
        return here <= there or window.interval(here - 1)[1] < frontier

    return all(same(s.name, w) for s, w in zip(core.streams, core.windows, strict=True))
