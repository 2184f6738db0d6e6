"""References that are wrong on purpose, each in one way that an engine could be wrong too."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from thalweg.engine.arrivals import Admission
from thalweg.engine.changelog import Change, in_order
from thalweg.engine.reference import (
    aggregates,
    arithmetic,
    bags,
    evaluator,
    meaning,
    tolerance,
    windows,
)
from thalweg.engine.reference.expressions import evaluate
from thalweg.engine.reference.meaning import Meaning, Relation
from thalweg.engine.reference.scalars import IMPLEMENTATIONS
from thalweg.plan.coherency.tolerance import ChangesSince, Deviation
from thalweg.plan.expr import Col
from thalweg.plan.nodes import SetKind, SortKey, Tolerant, walk
from thalweg.plan.windows import HopWindow, RowsWindow, SessionWindow, TimeWindow

Install = Callable[[pytest.MonkeyPatch], None]
MUTANTS: dict[str, Install] = {}


def mutant(install: Install) -> Install:
    MUTANTS[install.__name__] = install
    return install


# --- windows ------------------------------------------------------------------------------------


def _change_spec(patch: pytest.MonkeyPatch, change: Callable[[Any], Any]) -> None:
    """Every window is taken for another one."""
    content, turns = windows.content, windows.turns
    patch.setattr(meaning, "content", lambda spec, tuples, now: content(change(spec), tuples, now))
    patch.setattr(meaning, "turns", lambda spec, tuples: turns(change(spec), tuples))


def _is_bounded(spec: Any) -> bool:
    return isinstance(spec, TimeWindow) and spec.length is not None


@mutant
def tuples_expire_one_instant_early(patch: pytest.MonkeyPatch) -> None:
    def shorter(spec: Any) -> Any:
        return replace(spec, length=spec.length - 1) if _is_bounded(spec) and spec.length else spec

    _change_spec(patch, shorter)


@mutant
def tuples_expire_one_instant_late(patch: pytest.MonkeyPatch) -> None:
    _change_spec(
        patch, lambda spec: replace(spec, length=spec.length + 1) if _is_bounded(spec) else spec
    )


@mutant
def slide_is_ignored_for_time(patch: pytest.MonkeyPatch) -> None:
    _change_spec(
        patch, lambda spec: replace(spec, slide=1) if isinstance(spec, TimeWindow) else spec
    )


@mutant
def slide_is_ignored_for_rows(patch: pytest.MonkeyPatch) -> None:
    _change_spec(
        patch, lambda spec: replace(spec, slide=1) if isinstance(spec, RowsWindow) else spec
    )


@mutant
def partition_keys_are_ignored(patch: pytest.MonkeyPatch) -> None:
    def alike(spec: Any) -> Any:
        return replace(spec, partition_by=()) if isinstance(spec, RowsWindow) else spec

    _change_spec(patch, alike)


@mutant
def rows_windows_hold_one_row_more(patch: pytest.MonkeyPatch) -> None:
    def larger(spec: Any) -> Any:
        return replace(spec, count=spec.count + 1) if isinstance(spec, RowsWindow) else spec

    _change_spec(patch, larger)


@mutant
def tumbling_windows_hold_both_ends(patch: pytest.MonkeyPatch) -> None:
    def closed(spec: Any) -> Any:
        return TimeWindow(spec.length, spec.slide) if _hops_unbounded(spec) else spec

    _change_spec(patch, closed)


def _hops_unbounded(spec: Any) -> bool:
    return isinstance(spec, HopWindow) and spec.bounds is None


@mutant
def hopping_windows_tumble(patch: pytest.MonkeyPatch) -> None:
    def tumbling(spec: Any) -> Any:
        return replace(spec, length=spec.slide) if isinstance(spec, HopWindow) else spec

    _change_spec(patch, tumbling)


@mutant
def sessions_hold_tuples_just_a_gap_apart(patch: pytest.MonkeyPatch) -> None:
    sessions = windows._sessions

    def wider(spec: Any, tuples: Any, now: Any = None) -> Any:
        return sessions(replace(spec, gap=spec.gap + 1), tuples, now)

    patch.setattr(windows, "_sessions", wider)


@mutant
def sessions_have_no_keys(patch: pytest.MonkeyPatch) -> None:
    def alike(spec: Any) -> Any:
        return replace(spec, partition_by=()) if isinstance(spec, SessionWindow) else spec

    _change_spec(patch, alike)


@mutant
def bounds_are_turned_round(patch: pytest.MonkeyPatch) -> None:
    bounds = windows._bounds
    patch.setattr(windows, "_bounds", lambda of, start, end: bounds(of, end, start))


@mutant
def ties_in_base_streams_go_backwards(patch: pytest.MonkeyPatch) -> None:
    admit = evaluator.admit

    def backwards(stream: Any, arrivals: Any) -> Admission:
        admission = admit(stream, arrivals)
        ordered = sorted(admission.accepted, key=lambda a: (a.timestamp, -a.position))
        return Admission(tuple(ordered), admission.late)

    patch.setattr(evaluator, "admit", backwards)


@mutant
def ties_in_derived_streams_go_backwards(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(meaning, "row_key", lambda row: tuple(-hash(value) for value in row))


# --- changelogs and streams ---------------------------------------------------------------------


@mutant
def changes_are_not_netted(patch: pytest.MonkeyPatch) -> None:
    def rewritten(ts: int, before: Counter[Any], after: Counter[Any]) -> list[Change]:
        gone = [Change(ts, "-", row) for row in before.elements()]
        return in_order(gone + [Change(ts, "+", row) for row in after.elements()])

    patch.setattr(meaning, "net", rewritten)


@mutant
def bags_are_taken_for_sets(patch: pytest.MonkeyPatch) -> None:
    net = meaning.net
    patch.setattr(meaning, "net", lambda ts, b, a: net(ts, Counter(set(b)), Counter(set(a))))


@mutant
def rstream_speaks_at_every_change(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Meaning, "_boundaries", lambda self, node, source: iter(source.instants))


@mutant
def rstream_passes_over_slide_boundaries(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Meaning, "_boundaries", lambda self, node, source: iter(()))


@mutant
def rstream_looks_at_one_input_only(patch: pytest.MonkeyPatch) -> None:
    base_streams = meaning.base_streams
    patch.setattr(meaning, "base_streams", lambda node: base_streams(node)[:1])


# --- conditions ---------------------------------------------------------------------------------


@mutant
def unknown_counts_as_true(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bags, "holds", lambda predicate, row: evaluate(predicate, row) is not False)


@mutant
def null_equals_null(patch: pytest.MonkeyPatch) -> None:
    def equal(_: Any, left: Any, right: Any) -> bool:
        return bool(left == right)

    patch.setitem(IMPLEMENTATIONS, "=", equal)
    strict = evaluate.__globals__["FUNCTIONS"]
    patch.setitem(
        evaluate.__globals__, "FUNCTIONS", {**strict, "=": replace(strict["="], strict=False)}
    )


@mutant
def in_forgets_nulls(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bags, "disjunction", lambda *args: True in args)


@mutant
def exists_multiplies_rows(patch: pytest.MonkeyPatch) -> None:
    marked = bags.marked

    def joined(node: Any, rows: Any, subquery: Any) -> Any:
        if node.match is not None:
            return marked(node, rows, subquery)
        pairs = ((r, s) for r in rows for s in subquery if bags.holds(node.correlation, r + s))
        return [(*r, True) for r, _ in pairs]

    patch.setattr(bags, "marked", joined)


# --- operators ----------------------------------------------------------------------------------


@mutant
def left_join_forgets_rows_without_a_match(patch: pytest.MonkeyPatch) -> None:
    left_joined = bags.left_joined

    def inner(node: Any, left: Any, right: Any) -> Any:
        return [row for row in left_joined(node, left, right) if row[-1] is not None]

    patch.setattr(bags, "left_joined", inner)


@mutant
def left_join_keeps_the_nulls_beside_matches(patch: pytest.MonkeyPatch) -> None:
    left_joined = bags.left_joined

    def both(node: Any, left: Any, right: Any) -> Any:
        found = left_joined(node, left, right)
        nothing = (None,) * len(node.right.schema)
        padded = [row + nothing for row in left]
        return found + [row for row in padded if row not in found]

    patch.setattr(bags, "left_joined", both)


@mutant
def distinct_does_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bags, "distinct", lambda rows: rows)


@mutant
def the_first_rows_are_one_too_many(patch: pytest.MonkeyPatch) -> None:
    top = bags.top
    patch.setattr(bags, "top", lambda n, rows: top(replace(n, count=n.count + 1), rows))


@mutant
def the_first_rows_are_always_ascending(patch: pytest.MonkeyPatch) -> None:
    top = bags.top

    def ascending(node: Any, rows: Any) -> Any:
        keys = tuple(replace(k, descending=False) for k in node.keys)
        return top(replace(node, keys=keys), rows)

    patch.setattr(bags, "top", ascending)


@mutant
def ties_among_the_first_rows_go_backwards(patch: pytest.MonkeyPatch) -> None:
    top = bags.top
    patch.setattr(bags, "top", lambda n, rows: [] if not rows else top(_turned(n), rows))


def _turned(node: Any) -> Any:
    others = (Col(i, f.type) for i, f in enumerate(node.schema))
    return replace(node, keys=(*node.keys, *(SortKey(c, descending=True) for c in others)))


@mutant
def nulls_always_come_first(patch: pytest.MonkeyPatch) -> None:
    top = bags.top

    def first(node: Any, rows: Any) -> Any:
        keys = tuple(replace(k, nulls_last=False) for k in node.keys)
        return top(replace(node, keys=keys), rows)

    patch.setattr(bags, "top", first)


@mutant
def all_is_ignored(patch: pytest.MonkeyPatch) -> None:
    combined = bags.combined
    patch.setattr(bags, "combined", lambda n, a, b: combined(replace(n, all=False), a, b))


@mutant
def all_is_always_meant(patch: pytest.MonkeyPatch) -> None:
    combined = bags.combined
    patch.setattr(bags, "combined", lambda n, a, b: combined(replace(n, all=True), a, b))


@mutant
def except_is_turned_round(patch: pytest.MonkeyPatch) -> None:
    combined = bags.combined

    def turned(node: Any, left: Any, right: Any) -> Any:
        sides = (right, left) if node.kind is SetKind.EXCEPT else (left, right)
        return combined(node, *sides)

    patch.setattr(bags, "combined", turned)


@mutant
def relations_never_lose_a_row(patch: pytest.MonkeyPatch) -> None:
    base_relation = Meaning._base_relation

    def growing(self: Meaning, node: Any) -> Relation:
        name = node.stream.name.lower()
        plus = tuple(a for a in self.tuples[name] if a.op == "+")
        return base_relation(Meaning({**self.tuples, name: plus}, self.watermarks), node)

    patch.setattr(Meaning, "_base_relation", growing)


# --- aggregates ---------------------------------------------------------------------------------


@mutant
def null_is_no_group(patch: pytest.MonkeyPatch) -> None:
    grouped = bags.grouped

    def without_null(node: Any, rows: Any, exists: bool) -> Any:
        return [row for row in grouped(node, rows, exists) if None not in row[: len(node.keys)]]

    patch.setattr(bags, "grouped", without_null)


@mutant
def global_aggregates_vanish_with_their_window(patch: pytest.MonkeyPatch) -> None:
    grouped = bags.grouped
    patch.setattr(bags, "grouped", lambda node, rows, exists: grouped(node, rows, bool(rows)))


@mutant
def global_aggregates_were_always_there(patch: pytest.MonkeyPatch) -> None:
    grouped = bags.grouped
    patch.setattr(bags, "grouped", lambda node, rows, exists: grouped(node, rows, True))


@mutant
def count_counts_nulls(patch: pytest.MonkeyPatch) -> None:
    aggregate = aggregates.aggregate

    def counting(call: Any, rows: Any) -> Any:
        plain = call.function == "count" and not call.distinct
        return len(rows) if plain else aggregate(call, rows)

    patch.setattr(bags, "aggregate", counting)


@mutant
def distinct_arguments_are_not(patch: pytest.MonkeyPatch) -> None:
    aggregate = aggregates.aggregate

    def plain(call: Any, rows: Any) -> Any:
        return aggregate(replace(call, distinct=False), rows)

    patch.setattr(bags, "aggregate", plain)


@mutant
def sums_overflow_silently(patch: pytest.MonkeyPatch) -> None:
    wrapped = 1 << 64
    patch.setattr(
        aggregates, "fit_integer", lambda v, _: (v + wrapped // 2) % wrapped - wrapped // 2
    )


# --- values -------------------------------------------------------------------------------------


@mutant
def division_rounds_down(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(arithmetic, "_quotient", lambda a, b: math.floor(Fraction(a) / Fraction(b)))


@mutant
def rounding_is_half_to_even(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("thalweg.engine.reference.numeric.round_fraction", round)


# --- progress -----------------------------------------------------------------------------------


@mutant
def late_tuples_count(patch: pytest.MonkeyPatch) -> None:
    admit = evaluator.admit

    def generous(stream: Any, arrivals: Any) -> Admission:
        return admit(replace(stream, lateness=1 << 40), arrivals)

    patch.setattr(evaluator, "admit", generous)


@mutant
def lateness_is_exclusive(patch: pytest.MonkeyPatch) -> None:
    admit = evaluator.admit

    def strict(stream: Any, arrivals: Any) -> Admission:
        return admit(replace(stream, lateness=max(stream.lateness - 1, 0)), arrivals)

    patch.setattr(evaluator, "admit", strict)


@mutant
def partitions_share_a_watermark(patch: pytest.MonkeyPatch) -> None:
    admit = evaluator.admit

    def shared(stream: Any, arrivals: Any) -> Admission:
        return admit(stream, (replace(a, partition=0) for a in arrivals))

    patch.setattr(evaluator, "admit", shared)


@mutant
def what_was_there_before_the_start_is_left_out(patch: pytest.MonkeyPatch) -> None:
    changelog = meaning.changelog

    def cut(relation: Any, start: int | None = None) -> list[Change]:
        return [c for c in changelog(relation) if start is None or c.ts >= start]

    patch.setattr(meaning, "changelog", cut)
    patch.setattr(evaluator, "changelog", cut)


@mutant
def horizons_are_ignored(patch: pytest.MonkeyPatch) -> None:
    run = evaluator.run

    def unbounded(plan: Any, inputs: Any, **options: Any) -> Any:
        return run(plan, inputs, **{**options, "horizons": {}})

    patch.setattr(evaluator, "run", unbounded)


# --- tolerances ---------------------------------------------------------------------------------


def _change_passed(patch: pytest.MonkeyPatch, change: Callable[[Any], Any]) -> None:
    """Every tolerance is taken for another one."""
    passed = tolerance.passed
    patch.setattr(tolerance, "passed", lambda node, arrivals: passed(change(node), arrivals))


@mutant
def tolerances_do_not_tell_keys_apart(patch: pytest.MonkeyPatch) -> None:
    _change_passed(patch, lambda node: replace(node, per=()))


@mutant
def tolerances_are_a_little_too_strict(patch: pytest.MonkeyPatch) -> None:
    """What is just as far passes."""

    def stricter(node: Any) -> Any:
        if isinstance(node.tolerance, Deviation) and node.tolerance.amount:
            return replace(node, tolerance=Deviation(node.tolerance.amount - Decimal("0.001")))
        return node

    _change_passed(patch, stricter)


@mutant
def updates_are_counted_with_the_one_that_passed(patch: pytest.MonkeyPatch) -> None:
    def fewer(node: Any) -> Any:
        if isinstance(node.tolerance, ChangesSince) and node.tolerance.updates:
            return replace(node, tolerance=ChangesSince(node.tolerance.updates - 1))
        return node

    _change_passed(patch, fewer)


@mutant
def the_first_row_that_waits_passes_by_age(patch: pytest.MonkeyPatch) -> None:
    def first(age: int, rows: Any) -> Any:
        yield rows[0].timestamp, rows[0]
        waiting = list(rows[1:])
        while waiting:
            now = waiting[0].timestamp + age
            yield now, waiting[0]
            waiting = [row for row in waiting if row.timestamp >= now]

    patch.setattr(tolerance, "_by_age", first)


@mutant
def rows_that_pass_by_age_keep_their_instant(patch: pytest.MonkeyPatch) -> None:
    stamped = tolerance.stamped
    patch.setattr(tolerance, "stamped", lambda found: stamped([(a.timestamp, a) for _, a in found]))


@mutant
def a_tolerance_swallows_the_instants_of_what_it_holds_back(patch: pytest.MonkeyPatch) -> None:
    snapshots = Meaning._snapshots

    def fewer(self: Meaning, node: Any, source: Relation, start: int | None) -> Any:
        kept = dict(self.tuples)
        for part in walk(node):
            if isinstance(part, Tolerant):
                name = part.stream.name.lower()
                kept[name] = tuple(a for _, a in tolerance.passed(part, self.tuples[name]))
        return snapshots(replace(self, tuples=kept), node, source, start)

    patch.setattr(Meaning, "_snapshots", fewer)
