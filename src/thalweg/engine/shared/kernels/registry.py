"""Which kernel runs which operator."""

from __future__ import annotations

from thalweg.engine.shared.compile import physical as ph
from thalweg.engine.shared.kernels.aggregate import aggregate
from thalweg.engine.shared.kernels.changes import changes
from thalweg.engine.shared.kernels.exchange import exchange
from thalweg.engine.shared.kernels.group import matches
from thalweg.engine.shared.kernels.join.join import join
from thalweg.engine.shared.kernels.linear import map_, union
from thalweg.engine.shared.kernels.multiplicity import distinct, set_op
from thalweg.engine.shared.kernels.rows import rows_of
from thalweg.engine.shared.kernels.sessions import sessions_of
from thalweg.engine.shared.kernels.source import base_stream, source
from thalweg.engine.shared.kernels.streams import stream_of, time_of
from thalweg.engine.shared.kernels.tolerances import due_of, placed_of, tolerant_of
from thalweg.engine.shared.kernels.top_k import top_k
from thalweg.engine.shared.tick.task import Kernels

KERNELS: Kernels = {
    ph.BaseStream: base_stream,
    ph.Source: source,
    ph.Changes: changes,
    ph.TolerantOf: tolerant_of,
    ph.PlacedOf: placed_of,
    ph.DueOf: due_of,
    ph.RowsOf: rows_of,
    ph.SessionsOf: sessions_of,
    ph.TimeOf: time_of,
    ph.Map: map_,
    ph.Union: union,
    ph.Join: join,
    ph.Aggregate: aggregate,
    ph.Distinct: distinct,
    ph.SetOp: set_op,
    ph.TopK: top_k,
    ph.StreamOf: stream_of,
    ph.Exchange: exchange,
    ph.Matches: matches,
}
