"""Containment of cores: select, project and join (COSMOS 3.2, lemma 3.1 and theorem 3.1).

Every combination of tuples that makes a row of the one at an instant must make the same row of the
other then. With equal FROM lists that is enough; without self-joins it is necessary too, because
streams of one tuple each tell the two apart.
"""

from __future__ import annotations

from thalweg.plan.expr import Expr, Lit, transform
from thalweg.plan.text import expr_text, window_text
from thalweg.sharing.core import Core
from thalweg.sharing.facts import Facts, facts_of
from thalweg.sharing.implication import gap
from thalweg.sharing.naming import leaf_names, named_columns
from thalweg.sharing.permutation import reorderings
from thalweg.sharing.plans import conditions_of
from thalweg.sharing.representative import at_least_as_long
from thalweg.sharing.rules import rewritten


def core_gap(outer: Core, inner: Core) -> str | None:
    """Why `inner` is not contained in `outer`; None if it is."""
    facts = facts_of(inner)
    if facts.contradiction:
        return None  # it never has a row
    if [s.name for s in outer.streams] != [s.name for s in inner.streams]:
        return f"one reads {_listed(inner)}, the other {_listed(outer)}"
    first: str | None = None
    for one in reorderings(outer):
        reason = (
            _time_gap(one, inner, facts) or _rows_gap(one, facts) or _outputs_gap(one, inner, facts)
        )
        if reason is None:
            return None
        first = first or reason
    return first


def _listed(core: Core) -> str:
    return ", ".join(s.name for s in core.streams)


def _time_gap(outer: Core, inner: Core, facts: Facts) -> str | None:
    """A row must be in the outer's windows as long as it is in the inner's.

    Theorem 3.1 compares windows; a tuple's greatest age in a row says the same, and more where
    conditions on timestamps make a row end before its windows do. Where windows slide, a tuple's
    age does not tell whether it is there: then only windows of one slide are compared.
    """
    assert facts.times is not None
    names = leaf_names(inner.streams)
    for leaf, (window, own) in enumerate(zip(outer.windows, inner.windows, strict=True)):
        one, other = (f"{names[leaf]} {window_text(w, inner.streams[leaf])}" for w in (own, window))
        if window.slide != own.slide:
            return f"{one} does not slide as {other} does"
        if window.slide > 1:
            lasts = at_least_as_long(window, own)
        else:
            lasts = window.length is None or facts.times.age(leaf) <= window.length
        if not lasts:
            return f"{one} is longer than {other}"
    return None


def _rows_gap(outer: Core, facts: Facts) -> str | None:
    return gap(facts, conditions_of(outer), named_columns(outer.streams))


def _outputs_gap(outer: Core, inner: Core, facts: Facts) -> str | None:
    schema = named_columns(inner.streams)
    if len(outer.outputs) != len(inner.outputs):
        return f"one has {len(inner.outputs)} columns, the other {len(outer.outputs)}"
    pairs = zip(inner.outputs, outer.outputs, strict=True)
    for place, (one, other) in enumerate(pairs, 1):
        if _settled(one, facts) != _settled(other, facts):
            texts = f"{expr_text(one, schema)} in one, {expr_text(other, schema)} in the other"
            return f"column {place} is {texts}"
    return None


def _settled(expr: Expr, facts: Facts) -> Expr:
    """With equal columns under one name, and constants for what can have one value only."""

    def settle(e: Expr) -> Expr:
        values = facts.range(e)
        if values is not None and values.is_point and values.low is not None:
            return Lit(values.low.value, e.type)
        return e

    return rewritten(transform(facts.renamed(expr), settle))
