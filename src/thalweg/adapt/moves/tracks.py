"""A plan on two tracks, as PTLB runs it at two nodes: results with an old part, and those without.

Source: D-CAPE 3. A tuple is *old* if its timestamp is below τ. The sender makes results that have
an old part, the receiver those whose parts are all new, and a netting union adds them up. For plans
that are linear over windows that end (`eligibility.py`) this is the result itself, whatever τ is.

Which parts a result has is told by the instants of its tuples, one more column for each stream that
the plan reads. The new track needs none: who begins at τ without a past makes nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from thalweg.adapt.moves.eligibility import refusal
from thalweg.adapt.moves.ways import PTLB
from thalweg.plan import nodes
from thalweg.plan.catalog import PLACE
from thalweg.plan.expr import Col, Expr, Lit, remap
from thalweg.plan.functions import call
from thalweg.plan.nodes import Node
from thalweg.plan.types import BIGINT


class NotOnTracks(ValueError):
    """Why a plan can't run on two tracks, and what to do."""


@dataclass(frozen=True, slots=True)
class _Stamped:
    """A plan whose rows also say the instants of their parts. `columns` are those that it had."""

    node: Node
    columns: tuple[int, ...]
    instants: tuple[int, ...]

    def at(self, column: int) -> int:
        return self.columns[column]


def check(plan: Node) -> None:
    """Raises NotOnTracks."""
    why = refusal(PTLB, plan)
    if why is not None:
        raise NotOnTracks(why)
    _stamped(plan)


def old_track(plan: Node, tau: int) -> Node:
    """The results with an old part. Raises NotOnTracks."""
    check(plan)
    found = _stamped(plan)
    at = Lit(tau, BIGINT)
    is_old = [call("<", Col(i, BIGINT), at) for i in found.instants]
    any_old = reduce(lambda one, other: call("or", one, other), is_old)
    return _plain(replace(found, node=nodes.Filter(found.node, any_old)), plan.schema)


def both(plan: Node, old: Node) -> Node:
    """The union of what begins at τ and of the old track, as it is read."""
    return nodes.SetOp(nodes.SetKind.UNION, True, plan, old)


def old_until(plan: Node, tau: int) -> int:
    """The last instant at which a result with an old part may go: by intervals, τ plus the longest
    window and slide, at any height of the plan."""
    specs = [n.spec for n in nodes.walk(plan) if isinstance(n, nodes.Window)]
    return max(int(spec.interval(tau - 1)[1]) for spec in specs)  # type: ignore[union-attr]


def _stamped(plan: Node) -> _Stamped:
    match plan:
        case nodes.Window(nodes.Scan(stream) as scan, _):
            count = len(stream.fields) - (len(PLACE) if stream.is_placed else 0)
            bounds = range(len(stream.fields), len(plan.schema))
            more = 0 if stream.is_placed else len(PLACE)
            own = range(len(stream.fields))
            made = replace(plan, input=replace(scan, stream=stream.placed()))
            return _Stamped(made, (*own, *(b + more for b in bounds)), (count,))
        case nodes.Filter(input, predicate):
            below = _stamped(input)
            return replace(below, node=nodes.Filter(below.node, remap(predicate, below.at)))
        case nodes.Project(input, exprs, names):
            below = _stamped(input)
            count, stamps = len(exprs), range(len(below.instants))
            projected = nodes.Project(
                below.node,
                (*(remap(e, below.at) for e in exprs), *_columns(below.instants)),
                (*names, *(f"_part{i}" for i in stamps)),
            )
            return _Stamped(projected, tuple(range(count)), tuple(count + i for i in stamps))
        case nodes.Join(inputs, condition):
            return _joined([_stamped(i) for i in inputs], condition)
        case nodes.SetOp(_, _, left, right):
            sides = [_stamped(left), _stamped(right)]
            width = max(len(s.instants) for s in sides)
            one, other = (_of_width(s, plan.schema, width) for s in sides)
            count = len(plan.schema)
            made_both = replace(plan, left=one, right=other)
            return _Stamped(made_both, tuple(range(count)), tuple(range(count, count + width)))
    raise NotOnTracks(f"{type(plan).__name__} does not run on two tracks; use precopy")


def _joined(parts: list[_Stamped], condition: Expr) -> _Stamped:
    columns: list[int] = []
    instants: list[int] = []
    offset = 0
    for part in parts:
        columns += [offset + c for c in part.columns]
        instants += [offset + i for i in part.instants]
        offset += len(part.node.schema)
    made = nodes.Join(tuple(p.node for p in parts), remap(condition, columns.__getitem__))
    return _Stamped(made, tuple(columns), tuple(instants))


def _of_width(side: _Stamped, schema: nodes.Schema, width: int) -> Node:
    """With so many instants: a side of fewer parts says one of them again."""
    padded = (side.instants * width)[:width]
    own = tuple(Col(c, f.type) for c, f in zip(side.columns, schema, strict=True))
    names = (*(f.name for f in schema), *(f"_part{i}" for i in range(width)))
    return nodes.Project(side.node, (*own, *_columns(padded)), names)


def _plain(found: _Stamped, schema: nodes.Schema) -> Node:
    own = tuple(Col(c, f.type) for c, f in zip(found.columns, schema, strict=True))
    return nodes.Project(found.node, own, tuple(f.name for f in schema))


def _columns(places: tuple[int, ...]) -> tuple[Expr, ...]:
    return tuple(Col(p, BIGINT) for p in places)
