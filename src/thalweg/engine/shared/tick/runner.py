"""What a Spark task of a tick does: evaluate one level, hand rows on, write one bundle.

The functions here run inside Spark's Python workers. They know nothing of Spark.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator

import msgspec
import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.expressions.translate import to_polars
from thalweg.engine.shared.frames import TS
from thalweg.engine.shared.groups.families import changes, is_colocated
from thalweg.engine.shared.kernels.changes import judged
from thalweg.engine.shared.kernels.exchange import channel
from thalweg.engine.shared.kernels.group import group, keep_families, load_families
from thalweg.engine.shared.kernels.output import output
from thalweg.engine.shared.kernels.registry import KERNELS
from thalweg.engine.shared.state import relations, stems
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.hashing import key_hashes
from thalweg.engine.shared.state.loaded import Loaded
from thalweg.engine.shared.state.names import (
    ENDED,
    STARTED,
    Table,
    family_table,
    result_table,
)
from thalweg.engine.shared.state.segments import BundleWriter
from thalweg.engine.shared.tick.messages import PLANS, TaskReport, TickSpec
from thalweg.engine.shared.tick.plan import Flow, Plan
from thalweg.engine.shared.tick.task import READER, Task, carried
from thalweg.plan.windows import BEGINNING

Shipment = tuple[int, dict[str, list[bytes]]]  # to which task, what is in its channels
REPORTS = "reports"

_plans: Loaded[Plan] = Loaded()


def load_plan(files: Folder, name: str) -> Plan:
    folder = files / PLANS
    _plans.keep_only(folder, {name})
    return _plans.load(folder, name)


def run_share(packed: bytes, number: int) -> bytes:
    """All rows of a tick in one task, for all runs or for its share of them (`shares`)."""
    spec, plan = _open(packed)
    task = Task(spec, plan, KERNELS, 0, 0)
    task.fetch()
    if number == 0:
        _store_streams(task)
    mine = set(spec.shares[number]) if spec.shares else None
    for flow in _due(spec, plan):
        for query, op in flow.outputs:
            if mine is None or query in mine:
                _emit(task, flow, query, op)
    if not spec.shares:
        _report_rejects(task)
    return _finish(task)


def run_level(
    packed: bytes, number: int, level: int, shipments: Iterator[Shipment]
) -> Iterator[Shipment]:
    """One level of a tick in one of several tasks; the last level's shipments are reports."""
    spec, plan = _open(packed)
    task = Task(spec, plan, KERNELS, number, level)
    task.fetch()
    reports: list[bytes] = []
    for _, boxes in shipments:
        reports += boxes.pop(REPORTS, [])
        for box, frames in boxes.items():
            task.inbox.setdefault(box, []).extend(pl.read_ipc(io.BytesIO(f)) for f in frames)
    if level == 0:
        _store_streams(task)
        _report_rejects(task)
    outgoing: list[dict[str, list[bytes]]] = [{} for _ in range(spec.tasks)]
    for flow in _due(spec, plan):
        for query, output_ in flow.outputs:
            if plan.level_of(output_) == level:
                _emit(task, flow, query, output_)
        for op in flow.operators:
            _hand_on(task, flow, op, outgoing)
        for op, reader in _edges(flow):
            _carry(task, flow, op, reader, outgoing)
    outgoing[number][REPORTS] = [*reports, _finish(task)]
    yield from ((to, boxes) for to, boxes in enumerate(outgoing) if boxes)


def let_go(packed: bytes) -> None:
    """Of what this process keeps between ticks, all that a tick did not need; nobody who waits for
    the tick has to wait for this."""
    spec = msgspec.msgpack.decode(packed, type=TickSpec)
    bundles = {s.bundle for s in spec.segments}
    READER.keep_only(spec.files / "segments", bundles)
    (spec.files / "segments").forget(bundles)
    keep_families(spec.files, {g.families for g in spec.groups.values() if g.families is not None})


def _open(packed: bytes) -> tuple[TickSpec, Plan]:
    spec = msgspec.msgpack.decode(packed, type=TickSpec)
    return spec, load_plan(spec.files, spec.plan)


def _due(spec: TickSpec, plan: Plan) -> list[Flow]:
    """Flows for which time moves on."""
    return [f for f in plan.flows if spec.ranges[f.name][0] < spec.ranges[f.name][1]]


def _store_streams(task: Task) -> None:
    for stream in task.spec.backfill:
        stems.backfill(task, stream)
    for stream in task.spec.reduced:
        relations.reduce(task, stream)
    for stream in task.spec.landed:
        if stream in task.plan.stems and stream not in task.spec.reduced:
            stems.store(task, stream)


def _emit(task: Task, flow: Flow, query: str, op: ph.Ending) -> None:
    began = time.perf_counter()
    if isinstance(op, ph.Group):
        _emit_group(task, flow, query, op)
    else:
        _write(
            task.results, result_table(query), output(task, flow, query, op), *task.range_of(flow)
        )
    task.report.seconds[query] = time.perf_counter() - began


def _emit_group(task: Task, flow: Flow, name: str, op: ph.Group) -> None:
    """The representative's rows once, and what the families that somebody listens to say."""
    spec = task.spec.groups[name]
    low, high = task.range_of(flow)
    started, ended = group(task, flow, op, spec.windows)
    _write(task.results, result_table(name, STARTED), started, low, high)
    _write(task.results, result_table(name, ENDED), ended, low, high)
    if spec.families is None:
        return
    for place, family in enumerate(load_families(task.spec.files, spec.families)):
        if task.is_alone or is_colocated(op, family):
            rows = changes(family, started, ended, low, high)
            _write(task.pushed, family_table(name, place), rows, low, high)


def _write(to: BundleWriter, table: Table, rows: pl.DataFrame, low: int, high: int) -> None:
    if rows.height:
        to.add(table, rows, low, high)


def _report_rejects(task: Task) -> None:
    """A relation's changes that matched nothing, as its oldest flow sees them."""
    for stream in sorted(task.plan.read_relations):
        flow = next(f for f in task.plan.flows if stream in f.streams)
        if flow not in _due(task.spec, task.plan):
            continue
        reported = task.spec.rejects_from.get(stream, BEGINNING)
        op = next(
            o for o in flow.operators if isinstance(o, ph.Changes) and ph.base_names(o) == {stream}
        )
        found = judged(task, flow, op).filter(pl.col("_rejected") & (pl.col(TS) >= reported))
        if found.height:
            relations.report_rejects(task, stream, found.drop("_rejected"))


def _edges(flow: Flow) -> list[tuple[ph.AnyOp, ph.AnyOp]]:
    found = {
        (id(below), id(op)): (below, op) for op in flow.operators for below in ph.inputs_of(op)
    }
    return list(found.values())


def _hand_on(task: Task, flow: Flow, op: ph.AnyOp, outgoing: list[dict[str, list[bytes]]]) -> None:
    """Rows of this level that an Exchange brings to the tasks that own them."""
    plan = task.plan
    if not (isinstance(op, ph.Exchange) and ph.moves(op)):
        return
    if plan.level_of(op) != task.level + 1 or channel(task, flow, op) in outgoing[task.number]:
        return
    frame = task.evaluate(flow, op.input)
    if not frame.height:
        return
    box = channel(task, flow, op)
    if op.keys is None:
        everything = _packed(frame)
        for boxes in outgoing:
            boxes.setdefault(box, []).append(everything)
        return
    hashes = key_hashes(frame, [to_polars(k) for k in op.keys])
    for to, (low, high) in enumerate(task.ranges):
        part = frame.filter((hashes >= low) & (hashes <= high))
        if part.height:
            outgoing[to].setdefault(box, []).append(_packed(part))


def _carry(
    task: Task,
    flow: Flow,
    op: ph.AnyOp,
    reader: ph.AnyOp,
    outgoing: list[dict[str, list[bytes]]],
) -> None:
    """Rows that a later level of this same task reads again."""
    plan = task.plan
    box = carried(task, flow, op)
    if ph.is_from_streams(op) or box in outgoing[task.number]:
        return
    if isinstance(reader, ph.Exchange) and not ph.is_everywhere(op):
        return  # an Exchange reads at the level of its input
    if plan.level_of(op) <= task.level < plan.level_of(reader):
        frame = task.evaluate(flow, op)
        if frame.height:
            outgoing[task.number][box] = [_packed(frame)]


def _packed(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_ipc(buffer)
    return buffer.getvalue()


def _finish(task: Task) -> bytes:
    return msgspec.msgpack.encode(task.close())


def read_report(packed: bytes) -> TaskReport:
    return msgspec.msgpack.decode(packed, type=TaskReport)
