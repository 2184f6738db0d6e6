"""What changes from one deployment to the next: for each host to do, and for each operator to move.

Hosts that change are told (SQPR, Algorithm 1, lines 7 to 9); operators that run elsewhere
afterwards are migrated with their state (IV-B).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from thalweg.placement.deployment import Deployment
from thalweg.placement.problem import Problem


@dataclass(frozen=True, slots=True)
class HostChange:
    """What one host is told; a send is (to host, stream)."""

    host: int
    starts: tuple[int, ...] = ()
    stops: tuple[int, ...] = ()
    sends: tuple[tuple[int, int], ...] = ()
    unsends: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Migration:
    """An operator runs elsewhere; without a source it is new, without a target it ends."""

    operator: int
    source: int | None
    target: int | None
    state_bytes: float


def changes_between(before: Deployment, after: Deployment) -> tuple[HostChange, ...]:
    old = {*map(tuple, before.runs.tolist()), *map(tuple, before.sends.tolist())}
    new = {*map(tuple, after.runs.tolist()), *map(tuple, after.sends.tolist())}
    return host_changes(new - old, old - new)


def host_changes(
    added: Iterable[tuple[int, ...]], removed: Iterable[tuple[int, ...]]
) -> tuple[HostChange, ...]:
    """From rows of runs (host, operator) and sends (from, to, stream) that came and went."""
    new, old = sorted(added), sorted(removed)
    return tuple(
        HostChange(
            host,
            tuple(row[1] for row in new if row[0] == host and len(row) == 2),
            tuple(row[1] for row in old if row[0] == host and len(row) == 2),
            tuple((row[1], row[2]) for row in new if row[0] == host and len(row) == 3),
            tuple((row[1], row[2]) for row in old if row[0] == host and len(row) == 3),
        )
        for host in sorted({row[0] for row in (*new, *old)})
    )


def migrations(problem: Problem, before: Deployment, after: Deployment) -> tuple[Migration, ...]:
    """Per operator, hosts that stop it are paired with hosts that start it, lowest first."""
    old, new = ({(h, o) for h, o in d.runs.tolist()} for d in (before, after))
    started, stopped = sorted(new - old), sorted(old - new)
    found = []
    for operator in sorted({o for _, o in (*started, *stopped)}):
        sources: list[int | None] = [h for h, o in stopped if o == operator]
        targets: list[int | None] = [h for h, o in started if o == operator]
        longer = max(len(sources), len(targets))
        sources += [None] * (longer - len(sources))
        targets += [None] * (longer - len(targets))
        state = float(problem.operators.state_bytes[operator])
        found += [
            Migration(operator, source, target, state if source is not None else 0.0)
            for source, target in zip(sources, targets, strict=True)
        ]
    return tuple(found)
