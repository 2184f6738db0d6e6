"""The driver's side of joins' shapes: what tasks are told, what is learnt, what the book says.

Shapes change between ticks. A tick in which a join begins to keep something computes it as of the
tick's first instant, besides what the tick is for; from the next tick on it is probed. What a join
keeps no longer is dropped with the tick's transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from msgspec import structs

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.kernels.join.probing import probing_order
from thalweg.engine.shared.kernels.join.shapes import (
    MJOIN,
    Inputs,
    inputs_text,
    kept_in,
    shapes_of,
)
from thalweg.engine.shared.state.kept_joins import KeptJoin
from thalweg.engine.shared.state.manifest import Segments
from thalweg.engine.shared.state.segments import Segment
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick.cut import Cut
from thalweg.engine.shared.tick.messages import Sample, ShapeSpec, TaskReport
from thalweg.engine.shared.tick.plan import Plan
from thalweg.engine.shared.tick.shaping.estimates import Estimates
from thalweg.engine.shared.tick.shaping.policy import WINDOWS, Decision, Look, Policy
from thalweg.engine.shared.tick.shaping.work import Fanouts, longest_window
from thalweg.plan.windows import FOREVER

Records = dict[str, KeptJoin]


@dataclass(frozen=True)
class TickShapes:
    """Of all joins of three and more inputs whose time moves on in a tick."""

    specs: dict[str, ShapeSpec] = field(default_factory=dict)
    samples: dict[str, Sample] = field(default_factory=dict)
    joins: Mapping[str, tuple[str, ph.Join]] = field(default_factory=dict)  # flow, operator

    def is_readable(self, segment: Segment) -> bool:
        """Intermediates that do not count any more are not to be met, nor merged with others."""
        of = kept_in(segment.table)
        return of is None or (of[0] in self.specs and of[1] in self.specs[of[0]].usable)


class Shaping:
    def __init__(self, store: Store, policy: Policy) -> None:
        self._store, self.policy = store, policy
        self.records: Records = store.kept_joins.all()
        self._estimates: dict[str, Estimates] = {}
        self._streaks: dict[str, int] = {}
        self._samples: dict[str, Sample] = {}
        self._bytes: dict[str, int] = {}

    # --- before a tick

    def for_tick(self, cut: Cut, plan: Plan) -> TickShapes:
        joins = {
            place: of
            for place, of in _joins(plan).items()
            if cut.ranges[of[0]][0] < cut.ranges[of[0]][1]
        }
        specs = {}
        shapes = {p: self._shape(p, op, cut.number) for p, (_, op) in joins.items()}
        fanouts = _by_join(self._store.fanouts()) if any(shapes.values()) else {}
        for place, (flow, op) in joins.items():
            shape, record = shapes[place], self.records.get(place)
            if shape == MJOIN:
                continue
            there = record is not None and record.upto == cut.ranges[flow][0]
            built = record.built if record is not None and there else ()
            of = fanouts.get(place.split("/")[1], {})
            orders = (tuple(probing_order(op, i, of, shape)) for i in range(len(op.inputs)))
            specs[place] = ShapeSpec(shape, tuple(k for k in shape if k in built), tuple(orders))
        samples = {p: s for p, s in self._samples.items() if p in joins}
        return TickShapes(specs, samples, joins)

    def _shape(self, place: str, op: ph.Join, tick: int) -> tuple[Inputs, ...]:
        record = self.records.get(place)
        shape = self.policy.first(op, tick) if record is None else record.shape
        return shape if shape in shapes_of(op) else MJOIN  # another version may know others

    # --- after it

    def after(
        self, cut: Cut, plan: Plan, shapes: TickShapes, reports: Iterable[TaskReport]
    ) -> Records:
        """What the book is to say when the tick is a fact."""
        told = list(reports)
        standing = _joins(plan)
        records = {p: r for p, r in self.records.items() if p in standing}
        fanouts = _by_join(self._store.fanouts()) if shapes.joins else {}
        for gone in [p for p in self._estimates if p not in standing]:
            del self._estimates[gone]
            self._streaks.pop(gone, None)
            self._samples.pop(gone, None)
        for place, (flow, op) in shapes.joins.items():
            spec = shapes.specs.get(place)
            built, too_much = _built(cut, spec, place, told)
            known = self._learn(place, op, cut.ranges[flow], told)
            now = tuple(k for k in (spec.kept if spec else MJOIN) if k not in too_much)
            before = records.get(place, KeptJoin(now))
            record = _refused(before, op, too_much, cut.ranges[flow][1])
            look = self._look(
                place, op, cut, flow, known, record, fanouts.get(place.split("/")[1], {})
            )
            decision = self._decide(op, now, look)
            self._streaks[place] = decision.streak
            self._sample(place, known, decision)
            records[place] = _decided(record, decision, built, cut.ranges[flow][1])
        return records

    def _learn(
        self,
        place: str,
        op: ph.Join,
        instants: tuple[int, int],
        reports: Collection[TaskReport],
    ) -> Estimates:
        known = self._estimates.setdefault(place, Estimates.of(op))
        known.learn(
            _added(r.probes.get(place, {}) for r in reports),
            _added(r.sampled.get(place, {}) for r in reports),
            instants,
        )
        return known

    def _look(
        self,
        place: str,
        op: ph.Join,
        cut: Cut,
        flow: str,
        known: Estimates,
        record: KeptJoin,
        fanouts: Fanouts,
    ) -> Look:
        at = cut.ranges[flow][1]
        others = sum(size for p, size in self._bytes.items() if p != place)
        return Look(
            at,
            cut.number,
            known,
            fanouts,
            record.changes,
            frozenset(k for k, until in record.refused if at < until),
            self.policy.most_bytes - others,
            self._streaks.get(place, 0),
        )

    def _decide(self, op: ph.Join, now: tuple[Inputs, ...], look: Look) -> Decision:
        return Decision(now) if look.at >= FOREVER else self.policy.decide(op, now, look)

    def _sample(self, place: str, known: Estimates, decision: Decision) -> None:
        """The way that was not gone for longest, of those that some shape would go."""
        self._samples.pop(place, None)
        ways = {way: names for e in decision.weighed for way, names in e.needs.items()}
        ages = {
            way: max((known.age(n) for n in names if known.is_stale(n)), default=0)
            for way, names in ways.items()
        }
        way = max(ages, key=lambda w: ages[w], default=None)
        if way is not None and ages[way]:
            known.tried(ways[way])
            self._samples[place] = Sample(way[0], tuple(way[1]))

    def stay(
        self, records: Records, shapes: TickShapes, kept: Segments, before: Collection[object]
    ) -> tuple[Records, Segments]:
        """Which intermediates are still listed: those that count, as far as there is room."""
        listed: dict[tuple[str, Inputs], list[Segment]] = {}
        for key, segment in kept.items():
            of = kept_in(segment.table)
            if of is None:
                continue
            record = records.get(of[0])
            is_due = of[0] in shapes.joins
            counts = key not in before or not is_due or shapes.is_readable(segment)
            if record is not None and of[1] in record.built and counts:
                listed.setdefault(of, []).append(segment)
        sizes = {of: sum(s.size for s in segments) for of, segments in listed.items()}
        while sum(sizes.values()) > self.policy.most_bytes:
            place, inputs = max(sizes, key=lambda of: sizes[of])
            op = shapes.joins[place][1] if place in shapes.joins else None
            del sizes[place, inputs], listed[place, inputs]
            records = {**records, place: _without(records[place], inputs, op)}
        stays = {s.key for segments in listed.values() for s in segments}
        left = {key: s for key, s in kept.items() if kept_in(s.table) is None or key in stays}
        self._bytes = {}
        for (place, _), size in sizes.items():
            self._bytes[place] = self._bytes.get(place, 0) + size
        return records, left

    def write(self, records: Records) -> None:
        """Inside the tick's transaction; followed by `settle`."""
        self._store.kept_joins.write(self.records, records)

    def settle(self, records: Records) -> None:
        self.records = records


def _joins(plan: Plan) -> dict[str, tuple[str, ph.Join]]:
    """Those of three and more inputs; worked out once for a plan."""
    if "wide joins" not in plan.memo:
        plan.memo["wide joins"] = {
            plan.place_of(flow, op): (flow.name, op)
            for flow, op in plan.operators
            if isinstance(op, ph.Join) and len(op.inputs) > 2
        }
    found: dict[str, tuple[str, ph.Join]] = plan.memo["wide joins"]
    return found


def _by_join(fanouts: Mapping[str, float]) -> dict[str, dict[tuple[int, int], float]]:
    found: dict[str, dict[tuple[int, int], float]] = {}
    for probe, fanout in fanouts.items():
        join, start, target = probe.split("/")
        found.setdefault(join, {})[int(start), int(target)] = fanout
    return found


def _added(parts: Iterable[Mapping[str, list[int]]]) -> dict[str, list[int]]:
    total: dict[str, list[int]] = {}
    for part in parts:
        for name, counts in part.items():
            known = total.setdefault(name, [0, 0])
            known[0] += counts[0]
            known[1] += counts[1]
    return total


def _built(
    cut: Cut, spec: ShapeSpec | None, place: str, reports: Iterable[TaskReport]
) -> tuple[tuple[Inputs, ...], tuple[Inputs, ...]]:
    """What all tasks have kept, and what was too much for one of them."""
    if spec is None:
        return (), ()
    told = [r.kept[place] for r in reports if place in r.kept]
    if len(told) != cut.tasks:
        return (), ()  # somebody has not looked at the join at all
    texts = {k: inputs_text(k) for k in spec.kept}
    too_much = tuple(k for k, text in texts.items() if any(t.get(text, -1) < 0 for t in told))
    return tuple(k for k in spec.kept if k not in too_much), too_much


def _refused(record: KeptJoin, op: ph.Join, too_much: Iterable[Inputs], at: int) -> KeptJoin:
    until = at + WINDOWS * longest_window(op)
    still = tuple((k, t) for k, t in record.refused if at < t)
    return structs.replace(record, refused=(*still, *((k, until) for k in too_much)))


def _decided(
    record: KeptJoin,
    decision: Decision,
    built: Iterable[Inputs],
    at: int,
) -> KeptJoin:
    has_changed = decision.shape != record.shape
    why = decision.why or ("there were too many rows to keep" if has_changed else record.why)
    return structs.replace(
        record,
        shape=decision.shape,
        built=tuple(k for k in built if k in decision.shape),
        upto=at if decision.shape else 0,  # else it would be written at every tick
        changes=(*record.changes, at)[-8:] if has_changed else record.changes,
        why=why,
    )


def _without(record: KeptJoin, inputs: Inputs, op: ph.Join | None) -> KeptJoin:
    """One of its intermediates takes too much memory."""
    windows = WINDOWS * longest_window(op) if op is not None else 0
    return structs.replace(
        record,
        shape=tuple(k for k in record.shape if k != inputs),
        built=tuple(k for k in record.built if k != inputs),
        changes=(*record.changes, record.upto)[-8:],
        why="it took more memory than intermediates may",
        refused=(*record.refused, (inputs, record.upto + windows)),
    )
