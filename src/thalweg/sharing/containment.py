"""Containment and equivalence of continuous queries (COSMOS 3.2, definition 3.2).

Q₁ is contained in Q₂ if at every instant its result is a part of Q₂'s, whatever the streams hold.
Results are bags here.

Sound always. Complete where the question is decidable and COSMOS asks it: equal FROM lists without
self-joins, ranges and equalities of columns, differences of timestamps. Elsewhere a no may mean
that nobody can tell; its reason is what kept the answer from being yes.
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.plan.nodes import StreamKind
from thalweg.sharing.core import Grouped, NormalQuery, Step, WithoutRepeats
from thalweg.sharing.core_containment import core_gap
from thalweg.sharing.facts import facts_of
from thalweg.sharing.group_containment import groups_gap

DISTINCT: tuple[Step, ...] = (WithoutRepeats(),)


@dataclass(frozen=True, slots=True)
class Answer:
    """Yes, or no with the reason."""

    holds: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.holds


YES = Answer(True)


def contains(outer: NormalQuery, inner: NormalQuery) -> Answer:
    """Whether the inner query's result is a part of the outer's at every instant."""
    if outer.kind is not inner.kind:
        return Answer(False, f"one is {_kind(inner)}, the other {_kind(outer)}")
    if inner.kind is None or (_only_grows(inner) and _only_grows(outer)):
        return _answer(_relation_gap(outer, inner))
    same = equivalent(outer, inner)
    if same:
        return YES
    netted = f"what enters or leaves a part need not show in the {inner.kind.value} of the whole"
    return Answer(False, f"{same.reason}, and {netted}")


def equivalent(a: NormalQuery, b: NormalQuery) -> Answer:
    """Whether two queries have the same result at every instant."""
    if a.kind is not b.kind:
        return Answer(False, f"one is {_kind(a)}, the other {_kind(b)}")
    if (a.core, a.above) == (b.core, b.above):
        return YES
    return _answer(_relation_gap(a, b) or _relation_gap(b, a))


def _answer(reason: str | None) -> Answer:
    return YES if reason is None else Answer(False, reason)


def _kind(query: NormalQuery) -> str:
    return "a relation" if query.kind is None else f"its {query.kind.value}"


def _only_grows(query: NormalQuery) -> bool:
    """Whether rows never leave: then what enters a part enters the whole at the same instant."""
    return (
        query.kind is StreamKind.ISTREAM
        and not query.above
        and all(window.length is None for window in query.core.windows)
    )


def _relation_gap(outer: NormalQuery, inner: NormalQuery) -> str | None:
    if facts_of(inner.core).contradiction:
        return None  # it never has a row
    if _groups(outer) and _groups(inner):
        return groups_gap(outer, inner)
    if outer.above == inner.above:
        # DISTINCT, filters and projections keep a part a part; groups need all of it.
        grouped = any(isinstance(step, Grouped) for step in inner.above)
        reason = core_gap(outer.core, inner.core)
        return reason or (core_gap(inner.core, outer.core) if grouped else None)
    if not outer.above and inner.above == DISTINCT:
        return core_gap(outer.core, inner.core)
    if outer.above == DISTINCT and not inner.above:
        return "one keeps repeated rows, the other drops them (DISTINCT)"
    return "they do different things above select, project and join"


def _groups(query: NormalQuery) -> bool:
    return bool(query.above) and isinstance(query.above[0], Grouped)
