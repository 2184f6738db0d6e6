"""Who is there: queries, the groups that run, and which group answers which query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace

from thalweg.engine.shared.compile.planning import Run
from thalweg.engine.shared.groups.families import Lengths
from thalweg.engine.shared.groups.members import window_classes, windows_in
from thalweg.engine.shared.groups.running_group import RunningGroup


class GroupOf(MutableMapping[str, str]):
    """From a query to the group that answers it, to be asked from both sides; a query that runs
    alone has none."""

    def __init__(self) -> None:
        self._group: dict[str, str] = {}
        self._members: dict[str, dict[str, None]] = {}  # in the order in which they came

    def members(self, group: str) -> Collection[str]:
        return self._members.get(group, {}).keys()

    def __getitem__(self, query: str) -> str:
        return self._group[query]

    def __setitem__(self, query: str, group: str) -> None:
        self._leave(query)
        self._group[query] = group
        self._members.setdefault(group, {})[query] = None

    def __delitem__(self, query: str) -> None:
        self._leave(query)
        del self._group[query]

    def _leave(self, query: str) -> None:
        group = self._group.get(query)
        if group is None:
            return
        members = self._members[group]
        del members[query]
        if not members:
            del self._members[group]

    def __contains__(self, query: object) -> bool:
        return query in self._group

    def __iter__(self) -> Iterator[str]:
        return iter(self._group)

    def __len__(self) -> int:
        return len(self._group)


@dataclass(frozen=True)
class Snapshot:
    """A roster, to be restored if a change has to be taken back."""

    queries: Mapping[str, Run]
    groups: Mapping[str, RunningGroup]
    group_of: Mapping[str, str]


class Roster:
    def __init__(self, groups: Iterable[RunningGroup] = ()) -> None:
        self.queries: dict[str, Run] = {}
        self.groups = {g.name: g for g in groups}
        self.group_of = GroupOf()
        self.version = 0  # counts changes: what was worked out for another version is void
        self._runs: dict[str, Run] | None = None
        self._windows: dict[str, list[Lengths]] = {}

    # --- looking

    @property
    def runs(self) -> dict[str, Run]:
        """What a tick computes: queries that run alone, and groups."""
        if self._runs is None:
            self._runs = self.ungrouped() | {name: g.run for name, g in self.groups.items()}
        return self._runs

    def ungrouped(self) -> dict[str, Run]:
        """The queries that run alone."""
        grouped = self.group_of._group  # asked for all queries before every tick
        return {name: query for name, query in self.queries.items() if name not in grouped}

    def successors(self) -> list[Run]:
        """Queries that have replaced others and have not spoken yet."""
        return [q for q in self.runs.values() if q.replaces is not None]

    def run_of(self, query: str) -> Run | None:
        """The run that answers a query."""
        group = self.group_of.get(query)
        return self.groups[group].run if group is not None else self.queries.get(query)

    def members_of(self, group: str) -> list[Run]:
        return [self.queries[q] for q in self.group_of.members(group)]

    def windows_of(self, group: str) -> list[Lengths]:
        """The different windows of a group's members."""
        if group not in self._windows:
            family = self.groups[group].family
            of_members = window_classes(self.members_of(group))
            self._windows[group] = windows_in(family) if family else of_members
        return self._windows[group]

    # --- changing

    def add(self, queries: Iterable[Run], group_of: Iterable[tuple[str, str]] = ()) -> None:
        self.queries.update((q.name, q) for q in queries)
        self.group_of.update(group_of)
        self._changed()

    def remove(self, query: str) -> str | None:
        """Gives the group that has answered it."""
        del self.queries[query]
        group = self.group_of.pop(query, None)
        self._changed()
        return group

    def begin(self, group: RunningGroup) -> None:
        self.groups[group.name] = group
        self._changed()

    def end(self, group: str) -> None:
        del self.groups[group]
        self._changed()

    def move(self, members: Iterable[Run], group: str) -> None:
        for member in members:
            self.group_of[member.name] = group
            self.queries[member.name] = replace(member, plan=None)
        self._changed()

    def settle(self, begun: Iterable[str]) -> None:
        """Those have spoken for the first time: they are queries like others now."""
        for name in begun:
            self.queries[name] = replace(self.queries[name], replaces=None)
            self._changed()

    def snapshot(self) -> Snapshot:
        return Snapshot(self.queries.copy(), self.groups.copy(), dict(self.group_of))

    def restore(self, before: Snapshot) -> None:
        self.queries, self.groups = dict(before.queries), dict(before.groups)
        self.group_of = GroupOf()
        self.group_of.update(before.group_of)
        self._changed()

    def touch(self) -> None:
        """What is read has changed."""
        self._changed()

    def _changed(self) -> None:
        self.version += 1
        self._runs = None
        self._windows.clear()
