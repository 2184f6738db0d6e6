"""What holds for every row of a core, gathered for questions about what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from thalweg.plan.expr import FALSE, Call, Cast, Col, Expr, Lit, transform
from thalweg.plan.functions import FUNCTIONS
from thalweg.plan.types import BOOLEAN
from thalweg.sharing.comparisons import COMPARISONS
from thalweg.sharing.conditions import Conditions
from thalweg.sharing.core import Core
from thalweg.sharing.differences import Differences, differences
from thalweg.sharing.discrete import range_of
from thalweg.sharing.ranges import EVERYTHING, Range

# What else is true of two values where a comparison of them is.
_WEAKER = {"=": ("<=", ">="), "<": ("<=", "<>"), ">": (">=", "<>")}


@dataclass(frozen=True, slots=True)
class Facts:
    ranges: Mapping[Expr, Range]
    known: frozenset[Expr]  # conditions that hold as they stand, or follow from one alone
    classes: tuple[frozenset[Expr], ...]  # of equal expressions
    first: Mapping[Expr, Expr]  # for a column that equals a smaller one, the smallest
    never_null: frozenset[Expr]
    times: Differences | None = None  # None where there is no time
    impossible: bool = False  # no timestamps can meet it

    def range(self, expr: Expr) -> Range | None:
        """Between what an expression must lie; None if it may be NULL for all that is known."""
        own = self.ranges.get(expr)
        implied = self.times.range_of(expr) if self.times is not None else None
        if own is None and implied is None:
            return EVERYTHING if expr in self.never_null else None
        return (own or EVERYTHING).meet(implied or EVERYTHING)

    def renamed(self, expr: Expr) -> Expr:
        """In terms of the smallest of equal columns."""
        if not self.first:
            return expr
        return transform(expr, lambda e: self.first.get(e, e) if isinstance(e, Col) else e)

    @property
    def contradiction(self) -> bool:
        """Whether no row can meet all of it."""
        return (
            self.impossible
            or FALSE in self.known
            or any(values.is_empty for values in self.ranges.values())
            or any(self._is_denied(c) for c in self.known)
        )

    def _is_denied(self, condition: Expr) -> bool:
        match condition:
            case Call("<>", (expr, Lit(value, type_)), _):
                return self.range(expr) == range_of("=", value, type_)
            case Call("is_null", (expr,), _):
                return self.range(expr) is not None
            case Call("in", (expr, *options), _):
                own = self.range(expr) or EVERYTHING
                points = [range_of("=", o.value, o.type) for o in options if isinstance(o, Lit)]
                return len(points) == len(options) and all(own.meet(p).is_empty for p in points)
            case _:
                return False


def facts_of(core: Core) -> Facts:
    times = differences(core)
    conditions = Conditions(core.joins, core.ranges, core.residuals)
    return gathered(conditions, times, impossible=times is None)


def gathered(
    conditions: Conditions, times: Differences | None = None, impossible: bool = False
) -> Facts:
    equalities = [j for j in conditions.joins if isinstance(j, Call) and j.function == "="]
    classes: dict[Expr, set[Expr]] = {}
    for left, right in (e.args for e in equalities):
        classes.setdefault(left, {left}).add(right)
    known = set(conditions.joins) | {r.condition for r in conditions.residuals}
    for join in conditions.joins:
        if isinstance(join, Call):
            known |= {Call(f, join.args, BOOLEAN) for f in _WEAKER.get(join.function, ())}
    ranges = dict(conditions.ranges)
    values = [*_compared(tuple(known)), *ranges, *(times.places if times is not None else ())]
    return Facts(
        ranges,
        frozenset(known),
        tuple(frozenset(members) for members in classes.values()),
        {right: left for left, right in (e.args for e in equalities) if isinstance(right, Col)},
        frozenset(part for value in values for part in _strict_parts(value)),
        times,
        impossible,
    )


def _compared(conditions: Sequence[Expr]) -> Iterator[Expr]:
    """What is not NULL because a comparison of it is true."""
    for condition in conditions:
        if isinstance(condition, Call) and condition.function in (*COMPARISONS, "is_not_null"):
            yield from condition.args


def _strict_parts(expr: Expr) -> Iterator[Expr]:
    """A value that is not NULL, and the parts that then are not either."""
    yield expr
    match expr:
        case Call(function, args, _) if FUNCTIONS[function].strict:
            for arg in args:
                yield from _strict_parts(arg)
        case Cast(arg, _):
            yield from _strict_parts(arg)
