"""Physical operators as a tree that a person can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.explain.columns import (
    Streams,
    input_labels,
    joined_schema,
    schema_of,
)
from thalweg.engine.shared.explain.state import Size, State, kept_sizes
from thalweg.engine.shared.explain.tree import Branch
from thalweg.engine.shared.kernels.join.probing import indexes, probing_order, steps
from thalweg.engine.shared.kernels.join.shapes import MJOIN, shape_text
from thalweg.engine.shared.state.kept_joins import KeptJoin
from thalweg.engine.shared.tick.plan import Flow, Plan
from thalweg.engine.shared.tick.task import stem_table
from thalweg.plan.expr import TRUE, Col, Expr
from thalweg.plan.lengths import length_text
from thalweg.plan.moments import moment_text
from thalweg.plan.nodes import Schema
from thalweg.plan.text import (
    aggregate_text,
    expr_text,
    tolerance_text,
    top_text,
    window_text,
)
from thalweg.plan.windows import WindowSpec


def describe(
    plan: Plan, flow: Flow, query: str, output: ph.Ending, streams: Streams, state: State
) -> Branch:
    """A run's operators, from its output down to the streams; `query` is its name."""
    return _Describer(plan, flow, query, streams, state).branch(output)


@dataclass(frozen=True)
class _Describer:
    plan: Plan
    flow: Flow
    query: str
    streams: Streams
    state: State

    def branch(self, op: ph.AnyOp) -> Branch:
        title = self._title(op)
        remarks = [*self._own_remarks(op), *self._state_remarks(op), *self._sharing(op)]
        inputs = [
            self._stem(op, i)
            if isinstance(op, ph.Join) and isinstance(i, ph.Source)
            else self.branch(i)
            for i in ph.inputs_of(op)
        ]
        return Branch(title, tuple(remarks), tuple(inputs), self._facts(op))

    # --- what it is

    def _title(self, op: ph.AnyOp) -> str:
        match op:
            case ph.Output(_, kind):
                return f"Output {kind.value if kind else 'changelog'} of {self.query}"
            case ph.Group():
                return f"Rows of {self.query}, computed once for all its members"
            case ph.Matches():
                return "Rows by member: once for each whose profile they meet"
            case ph.Exchange():
                return _exchange_title(op, self._schema(op))
            case ph.Source(stream, _, window, predicate):
                where = self._where(predicate, self._schema(op))
                words = f"{window_text(window, self.streams[stream])}{_with_bounds(window)}"
                return f"Stream {stream} {words}{where}"
            case ph.BaseStream(stream, _, signed):
                return f"{'Changes of' if signed else 'Stream'} {stream}"
            case ph.Changes():
                return "Relation"
            case ph.TolerantOf(source, tolerance, column):
                keys = tuple(k.index for k in source.keys or () if isinstance(k, Col))
                words = tolerance_text(tolerance, column, keys, self._schema(source))
                return f"{words}: rows that are due"
            case ph.PlacedOf():
                return "With position"
            case ph.DueOf(source, predicate):
                return f"Rows{self._where(predicate, self._schema(source))}"
            case ph.RowsOf(source, window):
                return f"Window {window_text(window, None, self._schema(source))}"
            case ph.SessionsOf(source, window):
                words = window_text(window, self._clock(op), self._schema(source))
                return f"Window {words}{_with_bounds(window)}"
            case ph.TimeOf(_, window):
                return f"Window {window_text(window, self._clock(op))}{_with_bounds(window)}"
            case ph.StreamOf(kind, _):
                return kind.value
            case ph.Map(source, predicate, exprs):
                return self._map_title(source, predicate, exprs)
            case ph.Join():
                schema = joined_schema(op, self.streams)
                on = " and ".join(expr_text(c, schema) for c in op.conditions)
                return "Join" + (f" on {on}" if on else " of everything with everything")
            case ph.Aggregate(source, keys, aggregates):
                below = self._schema(source)
                what = ", ".join(aggregate_text(a, below) for a in aggregates)
                by = ", ".join(expr_text(k, below) for k in keys)
                return "Aggregate" + (f" {what}" if what else "") + (f" by {by}" if by else "")
            case ph.Panes(_, window):
                return f"Window {window_text(window, self._clock(op))} over whole panes"
            case ph.Partials(source, keys, _, _, _, width):
                by = ", ".join(expr_text(k, self._schema(source)) for k in keys)
                pane = length_text(width, self._clock(op))
                return f"Partial aggregates{f' by {by}' if by else ''} for every {pane}"
            case ph.Union(inputs):
                return "Minus" if any(sign < 0 for sign, _ in inputs) else "Union all"
            case ph.TopK(source, keys, count):
                return top_text(keys, count, source.keys or (), self._schema(source))
            case ph.SetOp(kind, all_, _, _):
                return kind.value.capitalize() + (" all" if all_ else "")
            case ph.Distinct():
                return "Distinct"

    def _map_title(self, source: ph.Op, predicate: Expr, exprs: tuple[Expr, ...]) -> str:
        below = self._schema(source)
        what = ", ".join(expr_text(e, below) for e in exprs)
        identity = [expr_text(e, below) for e in exprs] == [f.name for f in below]
        where = self._where(predicate, below)
        if predicate == TRUE:
            return f"Project {what}"
        return f"Filter{where.removeprefix(' where')}" + ("" if identity else f", project {what}")

    def _where(self, predicate: Expr, schema: Schema) -> str:
        return "" if predicate == TRUE else f" where {expr_text(predicate, schema)}"

    # --- what can be said about it

    def _own_remarks(self, op: ph.AnyOp) -> list[str]:
        match op:
            case ph.Join():
                names = ", ".join(f.name for f in self._schema(op))
                return [f"gives {names}", *self._shape_remarks(op), *self._probes(op)]
            case ph.Exchange():
                return [_exchange_remark(op)]
            case _:
                return []

    def _shape(self, op: ph.Join) -> KeptJoin:
        found = self.state.shapes.get(self.plan.place_of(self.flow, op))
        return KeptJoin(MJOIN) if found is None else found

    def _shape_remarks(self, op: ph.Join) -> list[str]:
        """What is kept beside windows, and why; nothing of a join that was always an MJoin."""
        shape, labels = self._shape(op), input_labels(op)
        if not shape.shape and not shape.changes:
            return []
        since = f", since {self._instant(op, shape.changes[-1])}" if shape.changes else ""
        why = f": {shape.why}" if shape.why else ""
        remarks = [f"shape {shape_text(shape.shape, labels)}{since}{why}"]
        sizes = kept_sizes(self.state.tables, self.plan.place_of(self.flow, op))
        for inputs in shape.shape:
            what = " ⋈ ".join(labels[i] for i in inputs)
            begins = "" if inputs in shape.built else " from the next tick on"
            remarks.append(f"keeps {what}{begins}: {sizes.get(inputs, Size())}")
        return remarks

    def _probes(self, op: ph.Join) -> list[str]:
        """For each input: which others its new rows probe, in which order, by which key."""
        labels, fanouts = input_labels(op), self._fanouts(op)
        schema = joined_schema(op, self.streams)
        remarks, shape = [], self._shape(op)
        for start, label in enumerate(labels):
            order = probing_order(op, start, fanouts, shape.shape)
            hops = []
            for step in steps(op, start, order, shape.shape, shape.built):
                by = ", ".join(expr_text(p, schema) for p in step.probe)
                seen = None if step.kept else fanouts.get((start, step.target))
                rate = f" (×{seen:.3g})" if seen is not None else ""
                to = " ⋈ ".join(labels[i] for i in step.binds)
                hops.append(f"{to}{f' by {by}' if by else ''}{rate}")
            remarks.append(f"new {label} probes " + ", then ".join(hops))
        return remarks

    def _fanouts(self, op: ph.Join) -> dict[tuple[int, int], float]:
        name = self.plan.name_of(op)
        found = {}
        for probe, fanout in self.state.fanouts.items():
            join, start, target = probe.split("/")
            if join == name:
                found[int(start), int(target)] = fanout
        return found

    def _state_remarks(self, op: ph.AnyOp) -> list[str]:
        return [f"keeps {part}: {size}" for part, size in self._state(op).items()]

    def _state(self, op: ph.AnyOp) -> dict[str, Size]:
        return self.state.parts(self.flow.name, self.plan.name_of(op))

    def _sharing(self, op: ph.AnyOp) -> list[str]:
        """Said at the top of what is shared, where there is something worth sharing."""
        if not isinstance(
            op,
            ph.Join
            | ph.Aggregate
            | ph.Partials
            | ph.Distinct
            | ph.TopK
            | ph.SetOp
            | ph.RowsOf
            | ph.SessionsOf,
        ):
            return []
        others = [q for q in self.state.sharers.get(self.plan.name_of(op), ()) if q != self.query]
        if not others:
            return []
        more = f" and {len(others) - 5} more" if len(others) > 5 else ""
        return [f"shared with {', '.join(others[:5])}{more}"]

    def _stem(self, op: ph.Join, source: ph.Source) -> Branch:
        """A join's base input: the SteMs of its stream, which all queries share."""
        position = next(i for i, x in enumerate(op.inputs) if x is source)
        fields = self.streams[source.stream].fields
        remarks, facts = [], []
        for keys in [k for k in indexes(op, position) if k] or [()]:
            by = ", ".join(expr_text(k, fields) for k in keys) or "order of arrival"
            size = self.state.tables.get(stem_table(source.stream, keys))
            holds = f": {size}" if size is not None else ": empty" if self.state.is_running else ""
            remarks.append(f"SteM by {by}{holds}")
            facts.append({"by": by, **(size or Size()).data()})
        return Branch(
            self._title(source), tuple(remarks), (), {**self._facts(source), "stems": facts}
        )

    # --- for programs

    def _facts(self, op: ph.AnyOp) -> dict[str, Any]:
        return {
            "operator": type(op).__name__,
            "id": self.plan.name_of(op),
            "level": self.plan.level_of(op),
            "columns": [{"name": f.name, "type": str(f.type)} for f in self._schema(op)],
            "state": {part: size.data() for part, size in self._state(op).items()},
        }

    def _schema(self, op: ph.AnyOp) -> Schema:
        return schema_of(op, self.streams)

    def _instant(self, op: ph.AnyOp, instant: int) -> str:
        clock = self._clock(op)
        if clock.timestamp_type.is_integer:
            return str(instant)
        return moment_text(instant, clock.resolution_us)

    def _clock(self, op: ph.AnyOp) -> Any:
        """A stream whose unit of time is the query's."""
        return self.streams[min(ph.base_names(op))]


def _with_bounds(window: WindowSpec) -> str:
    return " with its bounds" if window.bounds is not None else ""


def _exchange_title(op: ph.Exchange, schema: Schema) -> str:
    if op.keys is None:
        return "Broadcast"
    if not op.keys:
        return "Gather"
    names = [expr_text(k, schema) for k in op.keys]
    by = "the whole row" if names == [f.name for f in schema] else ", ".join(names)
    return f"Exchange by {by}"


def _exchange_remark(op: ph.Exchange) -> str:
    if op.stays:
        return "rows are with the task that owns their key already: nothing moves"
    if ph.is_everywhere(op.input):
        return "every task has these rows and takes its own: nothing moves"
    where = "to all tasks" if op.keys is None else "to the task that owns them"
    return f"rows go {where} (level {ph.level(op)})"
