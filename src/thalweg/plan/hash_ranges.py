"""The space of hashes divided by cost: D-CAPE's partition groups (section 3.1).

A *group* is a range of hashes, the unit that changes hands: between a node's tasks from tick to
tick, or between nodes. What a group costs is observed; groups that cost much are split, light
neighbours become one again, and owners get runs of groups of about equal cost. All pure: who owns
what is a function of what was observed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

SPACE = 1 << 64
FIRST_GROUPS = 64
MOST_GROUPS = 1024
NARROWEST = SPACE >> 24  # what is hot in less than that is one key, or nearly
SMOOTHING = 0.3  # weight of the newest observation
UNEVEN = 1.25  # times the mean: the most that the busiest owner may have before cuts move
BETTER = 0.9  # times the busiest owner's share: what a new division has to reach

Starts = tuple[int, ...]  # where each owner's range begins; it ends where the next one begins


@dataclass(frozen=True, slots=True)
class Group:
    """Hashes from `low` to `high`, both included, and what they cost in a tick."""

    low: int
    high: int
    cost: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high < SPACE:
            raise ValueError(f"no range of hashes: {self.low} to {self.high}")


def even(owners: int) -> Starts:
    """Ranges of equal width."""
    return tuple(SPACE * i // owners for i in range(owners))


def first_groups() -> tuple[Group, ...]:
    starts = even(FIRST_GROUPS)
    return tuple(Group(a, b - 1) for a, b in pairwise((*starts, SPACE)))


def observed(groups: Sequence[Group], costs: Mapping[int, float]) -> tuple[Group, ...]:
    """With what was seen now, by a group's low end; a group that nobody spoke of cost nothing."""
    has_seen = any(g.cost for g in groups)
    weight = SMOOTHING if has_seen else 1.0
    return tuple(
        replace(g, cost=(1 - weight) * g.cost + weight * costs.get(g.low, 0.0)) for g in groups
    )


def refined(groups: Sequence[Group], owners: int) -> tuple[Group, ...]:
    """Groups of more than an eighth of an owner's share are halved, light pairs become one."""
    limit = sum(g.cost for g in groups) / owners / 8
    if limit <= 0:
        return tuple(groups)
    merged: list[Group] = []
    for group in groups:
        before = merged[-1] if merged else None
        if before is not None and _are_halves(before, group) and _is_light(before, group, limit):
            merged[-1] = Group(before.low, group.high, before.cost + group.cost)
        else:
            merged.append(group)
    room = MOST_GROUPS - len(merged)
    found: list[Group] = []
    for group in merged:
        if group.cost > limit and group.high - group.low >= NARROWEST and room > 0:
            middle = (group.low + group.high) // 2
            half = group.cost / 2  # until it is seen
            found += [Group(group.low, middle, half), Group(middle + 1, group.high, half)]
            room -= 1
        else:
            found.append(group)
    return tuple(found)


def _are_halves(a: Group, b: Group) -> bool:
    """Of a group that was split, never of those that there are at first."""
    width = b.high - a.low + 1
    is_pair = a.high - a.low == b.high - b.low and a.low % width == 0
    return is_pair and width <= SPACE // FIRST_GROUPS


def _is_light(a: Group, b: Group, limit: float) -> bool:
    return a.cost + b.cost < 0.75 * limit


def cut(groups: Sequence[Group], owners: int) -> Starts:
    """Runs of groups, each as near to an equal share as groups allow."""
    total = sum(g.cost for g in groups)
    if total <= 0 or len(groups) < owners:
        return even(owners)
    starts, reached, number = [0], 0.0, 0
    for owner in range(1, owners):
        wanted = total * owner / owners
        last = len(groups) - (owners - owner)  # each of those behind needs a group
        while number < last:
            cost = groups[number].cost
            is_own = starts[-1] == groups[number].low  # nobody goes without
            if not is_own and reached + cost / 2 > wanted:
                break
            reached, number = reached + cost, number + 1
        starts.append(groups[number].low)
    return tuple(starts)


def busiest(groups: Sequence[Group], starts: Starts) -> float:
    """The most that an owner has, in shares: 1 is equal. A group that is cut counts by width."""
    lows = [g.low for g in groups]
    before = [0.0, *accumulate(g.cost for g in groups)]
    total = before[-1]
    if total <= 0:
        return 1.0

    def below(hash_: int) -> float:
        """What lies below a hash costs."""
        at = bisect_right(lows, hash_) - 1
        group = groups[at]
        inside = min(1.0, (hash_ - group.low) / (group.high - group.low + 1))
        return before[at] + group.cost * inside

    most = max(below(high) - below(low) for low, high in pairwise((*starts, SPACE)))
    return most / (total / len(starts))


def redivided(groups: Sequence[Group], starts: Starts) -> Starts:
    """The next division: another one only where the present one is uneven and that is better, since
    state that lies across a cut is not merged."""
    now = busiest(groups, starts)
    if now <= UNEVEN:
        return starts
    found = cut(groups, len(starts))
    return found if busiest(groups, found) <= BETTER * now else starts
