"""Which queries are answered together: groups of one signature, as far as merging pays.

COSMOS 3.2 merges where Σ C(Qᵢ) − C(Q) is positive. Queries come one by one and stay where they are
put: each joins the group of its signature where it saves most, or founds a new one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from thalweg.sharing.benefit import Costs, gain
from thalweg.sharing.core import Core, Signature
from thalweg.sharing.estimate import Statistics
from thalweg.sharing.representative import Representative, representative


@dataclass(frozen=True, slots=True)
class Group:
    representative: Representative
    members: tuple[int, ...]  # places of the cores that were given


def grouped(cores: Iterable[Core], statistics: Statistics, costs: Costs) -> tuple[Group, ...]:
    """In order of their first members."""
    groups: list[Group] = []
    by_signature: dict[Signature, list[int]] = {}
    for place, core in enumerate(cores):
        mates = by_signature.setdefault(core.signature, [])
        best = best_of([groups[m].representative for m in mates], core, statistics, costs)
        if best is None:
            mates.append(len(groups))
            groups.append(Group(representative([core]), (place,)))
        else:
            group = groups[mates[best]]
            groups[mates[best]] = Group(group.representative.merged(core), (*group.members, place))
    return tuple(groups)


def best_of(
    candidates: list[Representative], core: Core, statistics: Statistics, costs: Costs
) -> int | None:
    """The place of the group where a query saves most; None if it saves nothing anywhere."""
    found: int | None = None
    most = 0.0
    for place, rep in enumerate(candidates):
        saved = gain(rep, core, statistics, costs)
        if saved > most:
            found, most = place, saved
    return found
