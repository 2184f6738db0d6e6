"""Containment of aggregates (COSMOS 3.2, theorem 3.2, with what it leaves unsaid).

A group's row depends on all of the group's rows, so equal windows and contained conditions are not
enough: a filter below the aggregate changes sums. The inner query's groups must be groups of the
outer with the same rows in them: beyond the outer's conditions the inner may only have such as
speak of keys, which leave out whole groups. A HAVING may be stricter in the inner one.
"""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.plan.catalog import Field
from thalweg.plan.expr import Col, Expr, columns_of
from thalweg.plan.nodes import Schema
from thalweg.sharing.block import Leaf
from thalweg.sharing.conditions import classified
from thalweg.sharing.core import Core, Grouped, Kept, NormalQuery, Step
from thalweg.sharing.core_containment import core_gap
from thalweg.sharing.facts import gathered
from thalweg.sharing.implication import gap
from thalweg.sharing.normal import core_of
from thalweg.sharing.plans import conditions_of as conditions_of_core
from thalweg.sharing.rules import conditions_of
from thalweg.sharing.rules.merge_equalities import merge_equalities


def groups_gap(outer: NormalQuery, inner: NormalQuery) -> str | None:
    """For queries that both group their core; why the inner is not contained in the outer."""
    groups, *rest = inner.above
    other_groups, *other_rest = outer.above
    assert isinstance(groups, Grouped)
    if groups != other_groups or inner.core.outputs != outer.core.outputs:
        return "they group by different keys or compute different aggregates"
    kept, above = _having(rest)
    other_kept, other_above = _having(other_rest)
    if above != other_above:
        return "they make different results of their groups"
    if any(isinstance(s, Grouped) for s in above):
        # Groups of groups: fewer groups below change what is computed above.
        if kept != other_kept:
            return "one leaves out groups that the other counts"
        return core_gap(outer.core, inner.core) or core_gap(inner.core, outer.core)
    return _same_rows_gap(outer.core, inner.core, groups) or _having_gap(
        other_kept, kept, _columns(groups)
    )


def _having(steps: Sequence[Step]) -> tuple[tuple[Expr, ...], tuple[Step, ...]]:
    if steps and isinstance(steps[0], Kept):
        return conditions_of(steps[0].predicate), tuple(steps[1:])
    return (), tuple(steps)


def _same_rows_gap(outer: Core, inner: Core, groups: Grouped) -> str | None:
    """The outer's rows in the inner's groups must be the inner's rows."""
    keys = {inner.outputs[k.index] for k in groups.keys if isinstance(k, Col)}
    on_keys = [c for c in conditions_of_core(inner) if _speaks_of(c, keys)]
    leaves = tuple(map(Leaf, outer.streams, outer.windows))
    narrowed = core_of(leaves, [*conditions_of_core(outer), *on_keys], outer.outputs)
    reason = core_gap(outer, inner)
    if reason is not None:
        return reason
    beyond = core_gap(inner, narrowed)
    return None if beyond is None else f"the same groups have other rows: {beyond}"


def _speaks_of(condition: Expr, keys: set[Expr]) -> bool:
    """Whether all columns of a condition are keys themselves."""
    columns = {k.index for k in keys if isinstance(k, Col)}
    return columns_of(condition) <= columns


def _having_gap(outer: tuple[Expr, ...], inner: tuple[Expr, ...], schema: Schema) -> str | None:
    merged = merge_equalities(inner, (), (0,))
    facts = gathered(classified(merged.equalities, merged.others, len(schema)))
    return None if facts.contradiction else gap(facts, outer, schema)


def _columns(groups: Grouped) -> Schema:
    keys = [Field(f"key {i}", k.type) for i, k in enumerate(groups.keys, 1)]
    return (
        *keys,
        *(Field(f"{c.function} {i}", c.type) for i, c in enumerate(groups.aggregates, 1)),
    )
