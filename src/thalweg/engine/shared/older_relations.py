"""Relations in data directories of versions that did not keep them whole.

There, a relation's changes went when its queries had seen them; but a query that has been there
from the beginning has what they add up to, as the state of its operator. That becomes the
relation's content, once.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import polars as pl

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.expressions.translate import to_polars
from thalweg.engine.shared.frames import POS, TS, H, W, concat, data_schema, names
from thalweg.engine.shared.kernels.changes import COUNT
from thalweg.engine.shared.state.hashing import with_hash
from thalweg.engine.shared.state.inputs import Relation
from thalweg.engine.shared.state.manifest import Manifest
from thalweg.engine.shared.state.names import Table, state_table, stem_stream, stem_table
from thalweg.engine.shared.state.segments import BundleWriter, SegmentReader
from thalweg.engine.shared.state.store import Store
from thalweg.engine.shared.tick.plan import Flow, Plan
from thalweg.plan.catalog import StreamDef
from thalweg.plan.windows import BEGINNING


def adopt_relations(
    store: Store, manifest: Manifest, plan: Plan, streams: Mapping[str, StreamDef]
) -> None:
    """Make those whole of which a running query has the content; between ticks."""
    reached = store.frontiers()
    for name in sorted(plan.signed):
        if store.inputs.complete_from(name, ()) == BEGINNING:
            continue
        ran = [f for f in plan.flows if name in f.streams and f.name in reached]
        slowest = min(ran, key=lambda f: reached[f.name], default=None)
        if slowest is not None and slowest.horizon(name) == BEGINNING:
            upto = reached[slowest.name]
            _adopt(store, manifest, plan, slowest, streams[name], upto)


def _adopt(
    store: Store,
    manifest: Manifest,
    plan: Plan,
    flow: Flow,
    stream: StreamDef,
    upto: int,
) -> None:
    """The flow's multiplicities as rows at the instant before `upto`, and the changes from there
    on."""
    columns = names(len(stream.fields))
    schema = {**data_schema(plan.types[stream.name]), TS: pl.Int64, POS: pl.Int64, W: pl.Int64}
    op = next(
        o for o in flow.operators if isinstance(o, ph.Changes) and ph.base_names(o) == {stream.name}
    )
    held = _read(manifest, state_table(flow.name, plan.name_of(op), "state"))
    left = [
        f.group_by(columns, maintain_order=True)
        .agg(pl.col(COUNT).sum().alias(W))
        .filter(pl.col(W) != 0)
        .with_columns(
            pl.lit(upto - 1, dtype=pl.Int64).alias(TS), pl.lit(0, dtype=pl.Int64).alias(POS)
        )
        for f in ([pl.concat([h.select(*columns, COUNT) for h in held])] if held else [])
    ]
    old = [s for s in manifest if stem_stream(s.table) == stream.name]
    (first, *_) = store.inputs.stems().get(stream.name, ((),))
    later = [f.filter(pl.col(TS) >= upto) for f in _read(manifest, stem_table(stream.name, first))]
    (keys,) = plan.stems[stream.name]
    rows = concat([f.select(list(schema)) for f in (*left, *later)], pl.DataFrame(schema=schema))
    bundle = f"relation-{uuid.uuid4().hex[:8]}.arrow"
    writer = BundleWriter(manifest.folder, bundle)
    if rows.height:
        hashed = with_hash(rows, [to_polars(k) for k in keys]).sort(H)
        stamps = hashed[TS]
        writer.add(
            stem_table(stream.name, keys),
            hashed,
            int(stamps.min()),
            int(stamps.max()),  # type: ignore[arg-type]
        )
    with store.transaction():
        manifest.drop(old)
        manifest.adopt(writer.close())
        store.inputs.write_stems({**store.inputs.stems(), stream.name: (keys,)})
        store.inputs.make_whole(stream.name, len(stream.fields))
        store.inputs.write_relation(stream.name, Relation(upto, upto, rows.height))


def _read(manifest: Manifest, table: Table) -> list[pl.DataFrame]:
    reader = SegmentReader()
    return [reader.read(manifest.folder, s).frame for s in manifest.of(table)]
