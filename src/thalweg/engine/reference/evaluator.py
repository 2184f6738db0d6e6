"""From the arrivals of the base inputs to what a query prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, TypeVar, Unpack

from thalweg.engine.arrivals import Arrival, Row, admit
from thalweg.engine.changelog import Change, in_order
from thalweg.engine.reference.conform import conform
from thalweg.engine.reference.meaning import ClassStart, Meaning, changelog
from thalweg.plan.catalog import StreamDef
from thalweg.plan.nodes import Node, StreamKind, Tolerant, ToStream, base_streams

Inputs = Mapping[str, Sequence[Arrival]]  # by stream name, each in order of arrival
_T = TypeVar("_T")


class Options(TypedDict, total=False):
    """How a query is run; without any of them, from the first tuple to the end of all inputs.

    - `horizons`: by input, the timestamp below which its tuples are ignored altogether. A relation
      begins at its horizon with its content of that instant, as if it had been inserted then.
    - `start`: the instant of the query's submission. Its own result is empty before; streams
      inside it are not cut.
    - `watermarks`: of the inputs that have not ended. Only instants below all of them are final,
      and only final instants are returned.
    - `classes`: of tolerances that were there before the query, when they began to count, and the
      instant whose held rows the query begins with.
    """

    horizons: Mapping[str, int]
    start: int | None
    watermarks: Mapping[str, int]
    classes: Mapping[Tolerant, ClassStart]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a query prints, and by base input the tuples that did not count."""

    changes: list[Change]
    late: dict[str, tuple[Arrival, ...]]
    rejects: dict[str, tuple[Arrival, ...]]


def run(plan: Node, inputs: Inputs, **options: Unpack[Options]) -> Outcome:
    arrivals = _by_lower_name(inputs)
    horizons = _by_lower_name(options.get("horizons", {}))
    watermarks = _by_lower_name(options.get("watermarks", {}))
    outcome = Outcome([], {}, {})
    tuples: dict[str, tuple[Arrival, ...]] = {}
    whole: dict[str, tuple[Arrival, ...]] = {}
    for stream in base_streams(plan):
        name = stream.name.lower()
        if name not in arrivals:
            raise ValueError(f"no input is given for {stream.name}")
        admission = admit(stream, (_conformed(stream, a) for a in arrivals[name]))
        tuples[name], outcome.rejects[stream.name] = _matched(admission.accepted)
        whole[name] = tuples[name]
        if name in horizons:
            begin = _content_from if stream.is_relation else _from
            tuples[name] = begin(horizons[name], tuples[name])
        outcome.late[stream.name] = admission.late
    meaning = Meaning(tuples, watermarks, whole, options.get("classes", {}))
    frontier = meaning.frontier(plan)
    changes = _changes(plan, meaning, options.get("start"))
    outcome.changes.extend(c for c in changes if c.ts < frontier)
    return outcome


def evaluate(plan: Node, inputs: Inputs, **options: Unpack[Options]) -> list[Change]:
    """A relation's changelog, or a stream's tuples as `+`, in canonical order."""
    return run(plan, inputs, **options).changes


def evaluate_stream_of(plan: Node, inputs: Inputs, **options: Unpack[Options]) -> list[Change]:
    """A query's own stream, or ISTREAM of its relation."""
    stream = plan if plan.is_stream else ToStream(StreamKind.ISTREAM, plan)
    return run(stream, inputs, **options).changes


def _changes(plan: Node, meaning: Meaning, start: int | None) -> list[Change]:
    if not plan.is_stream:
        return changelog(meaning.relation(plan), start)
    stream = meaning.derived(plan, start) if isinstance(plan, ToStream) else meaning.stream(plan)
    changes = (Change(t.timestamp, "+", t.row) for t in stream.tuples)
    return in_order(c for c in changes if start is None or c.ts >= start)


def _conformed(stream: StreamDef, arrival: Arrival) -> Arrival:
    if len(arrival.row) != len(stream.fields):
        raise ValueError(f"{stream.name} has {len(stream.fields)} columns, not {arrival.row}")
    values = (conform(v, f.type) for v, f in zip(arrival.row, stream.fields, strict=True))
    return replace(arrival, row=tuple(values))


def _matched(arrivals: Iterable[Arrival]) -> tuple[tuple[Arrival, ...], tuple[Arrival, ...]]:
    """Those that count, and a relation's minuses that found no row to take away at their turn."""
    present: Counter[Row] = Counter()
    counted: list[Arrival] = []
    rejected: list[Arrival] = []
    for arrival in arrivals:
        if arrival.op == "-" and not present[arrival.row]:
            rejected.append(arrival)
            continue
        present[arrival.row] += 1 if arrival.op == "+" else -1
        counted.append(arrival)
    return tuple(counted), tuple(rejected)


def _from(horizon: int, arrivals: Iterable[Arrival]) -> tuple[Arrival, ...]:
    return tuple(a for a in arrivals if a.timestamp >= horizon)


def _content_from(horizon: int, changes: Sequence[Arrival]) -> tuple[Arrival, ...]:
    """A relation's content at the horizon, inserted there, and what changes later."""
    content: Counter[Row] = Counter()
    for change in changes:
        if change.timestamp <= horizon:
            content[change.row] += 1 if change.op == "+" else -1
    inserted = (Arrival(0, horizon, 0, row) for row in content.elements())
    return (*inserted, *_from(horizon + 1, changes))


def _by_lower_name(mapping: Mapping[str, _T]) -> dict[str, _T]:
    return {name.lower(): value for name, value in mapping.items()}
