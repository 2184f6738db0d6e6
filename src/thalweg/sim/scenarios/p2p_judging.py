"""What is wrong with what peers have said of a query, if anything: the reference is the judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from thalweg.overlay.p2p.query import JoinQuery, combinations
from thalweg.overlay.p2p.results import OpenQuery
from thalweg.overlay.p2p.tuples import Parts, Tup, ids_of
from thalweg.plan.nodes import Node
from thalweg.sim.scenarios.p2p_world import expected

Printed = tuple[int, str, tuple[object, ...]]  # a change: instant, + or -, row


def exact_problem(
    plan: Node, standing: OpenQuery, truth: Sequence[Tup], said: Sequence[Printed]
) -> str | None:
    """All of the reference's changes, once; without combinations that were reported as lost."""
    query, horizon = standing.query, standing.horizon or 0
    changes = expected(plan, query, truth, horizon, standing.said)
    wanted: list[Printed] = [(c.ts, c.op, c.row) for c in changes]
    if standing.lost:
        wanted = _without_lost(wanted, standing, truth)
        is_same = Counter(said) == Counter(wanted)
    else:
        is_same = list(said) == wanted
    if is_same:
        return None
    missing = Counter(wanted) - Counter(said)
    extra = Counter(said) - Counter(wanted)
    return (
        f"{query.id} from {horizon}: {sum(missing.values())} changes missing "
        f"(first {min(missing, default=None)}), {sum(extra.values())} too many "
        f"(first {min(extra, default=None)}) of {len(wanted)}"
    )


def _without_lost(
    wanted: Sequence[Printed], standing: OpenQuery, truth: Sequence[Tup]
) -> list[Printed]:
    query, lost = standing.query, standing.lost
    net: Counter[tuple[int, tuple[object, ...]]] = Counter()
    for ts, op, row in wanted:
        net[ts, row] += 1 if op == "+" else -1
    for parts in combinations(query, _by_stream(truth, standing.horizon or 0)):
        start, end = query.interval(parts)
        cuts = [lost[p.source].since or 0 for p in parts if p.source in lost]
        if cuts and start >= min(cuts):
            net[start, query.row(parts)] -= 1
            if end < standing.said:
                net[end, query.row(parts)] += 1
    return [(ts, "+" if n > 0 else "-", row) for (ts, row), n in net.items() for _ in range(abs(n))]


def shed_problem(
    plan: Node, standing: OpenQuery, truth: Sequence[Tup], said: Sequence[Printed]
) -> str | None:
    """With too little memory: nothing that is not among the reference's combinations."""
    query = standing.query
    allowed: Counter[Printed] = Counter()
    for parts in combinations(query, _by_stream(truth, standing.horizon or 0)):
        start, end = query.interval(parts)
        allowed[start, "+", query.row(parts)] += 1
        allowed[end, "-", query.row(parts)] += 1
    if extra := Counter(said) - allowed:
        return f"{query.id} says {min(extra)}, which no combination explains"
    return None


def eager_problem(query: JoinQuery, truth: Sequence[Tup], found: Iterable[Parts]) -> str | None:
    said = [ids_of(parts) for parts in found]
    allowed = {ids_of(parts) for parts in combinations(query, _by_stream(truth, 0))}
    if len(set(said)) != len(said):
        return f"{query.id} says a combination twice"
    if extra := set(said) - allowed:
        return f"{query.id} says {min(extra)}, which is no combination"
    return None


def _by_stream(truth: Iterable[Tup], horizon: int) -> dict[str, list[Tup]]:
    found: dict[str, list[Tup]] = {}
    for t in truth:
        if t.ts >= horizon:
            found.setdefault(t.stream, []).append(t)
    return found
