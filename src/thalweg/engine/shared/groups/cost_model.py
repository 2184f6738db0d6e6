"""Whether it pays to answer queries together: Σ C(Qᵢ) − C(Q), per tick (COSMOS 3.2).

A run costs something by itself, and so does every row. A representative is one run instead of many,
but computes more rows than its members where its ranges are wider than theirs. Rows are estimated
from observed rates and spans of values (`sharing.estimate`), and scaled to those measured of the
parts that run; what a row costs is measured of them, too. While nothing is known, it pays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import polars as pl

from thalweg.engine.shared.frames import name
from thalweg.engine.shared.state.folder import Folder
from thalweg.engine.shared.state.segments import Segment, SegmentReader
from thalweg.plan.catalog import StreamDef
from thalweg.plan.expr import Value
from thalweg.sharing.core import Core
from thalweg.sharing.estimate import Statistics, rows_per_s
from thalweg.sharing.representative import representative

RUN_S = 3e-3  # what a run costs in a tick, however few its rows (measured: docs/performance.md)
ROW_S = 1.5e-6  # what a row of a join costs: found, checked, written
LEAST_ROW_S = 5e-8  # no row is cheaper
FEW_ROWS = 1_000  # too few to tell what one costs
SMOOTHING = 0.3
SAMPLED = 4  # segments of a stream that are looked at for spans


class Sharing(Enum):
    """Which queries are answered together."""

    NEVER = "never"
    WHERE_IT_PAYS = "where it pays"
    WHEREVER_POSSIBLE = "wherever possible"  # whatever was measured: the same in every run


@dataclass
class Observed:
    """What ticks have shown, smoothed."""

    tuples: dict[str, float] = field(default_factory=dict)  # per tick, by stream
    rows: dict[str, float] = field(default_factory=dict)  # per tick, by run
    seconds: dict[str, float] = field(default_factory=dict)  # per tick, by run

    def record(
        self, tuples: Mapping[str, int], rows: Mapping[str, int], seconds: Mapping[str, float]
    ) -> None:
        for known, new in ((self.tuples, tuples), (self.rows, rows), (self.seconds, seconds)):
            for key, value in new.items():
                known[key] = known.get(key, value) * (1 - SMOOTHING) + value * SMOOTHING


@dataclass(frozen=True)
class Part:
    """A group, or a query that runs alone: what it computes, and the run that does."""

    core: Core
    run: str | None  # None: it has not run yet


def saving_s(parts: Sequence[Part], observed: Observed, statistics: Statistics) -> float:
    """Seconds of a tick that one representative for all parts saves; negative if it costs more."""
    together = representative(p.core for p in parts).to_core()
    estimates = [_rows(p.core, statistics) for p in parts]
    whole = _rows(together, statistics)
    measured = [observed.rows.get(p.run) if p.run is not None else None for p in parts]
    known = [(m, e) for m, e in zip(measured, estimates, strict=True) if m is not None and e > 0]
    # Estimates are good for comparing; measured rows give them their scale.
    scale = sum(m for m, _ in known) / sum(e for _, e in known) if known else 1.0
    row_s = _row_s(parts, observed)
    alone = sum(RUN_S + row_s * e * scale for e in estimates)
    return alone - (RUN_S + row_s * whole * scale)


def is_wasteful(wide: Part, tight: Core, observed: Observed, statistics: Statistics) -> bool:
    """Whether half of what a part computes, or more, is not in the tight core, and not little."""
    rows, estimate = observed.rows.get(wide.run or "", 0.0), _rows(wide.core, statistics)
    if estimate == 0:
        return False
    excess = 1 - _rows(tight, statistics) / estimate
    return excess >= 0.5 and _row_s([wide], observed) * rows * excess > RUN_S


def _row_s(parts: Sequence[Part], observed: Observed) -> float:
    """What a row of these parts was measured to cost, beyond what a run costs anyway."""
    runs = [p.run for p in parts if p.run in observed.seconds and p.run in observed.rows]
    rows = sum(observed.rows[r] for r in runs)  # type: ignore[index]
    if rows < FEW_ROWS:
        return ROW_S
    spent = sum(observed.seconds[r] - RUN_S for r in runs)  # type: ignore[index]
    return min(max(spent / rows, LEAST_ROW_S), ROW_S)


def _rows(core: Core, statistics: Statistics) -> float:
    if any(s.name not in statistics.rates for s in core.streams):
        return 0.0
    return rows_per_s(core, statistics)


def statistics_for(
    core: Core,
    observed: Observed,
    segments: Iterable[Segment],
    reader: SegmentReader,
    folder: Folder,
) -> Statistics:
    """What is known of a core's streams; a tuple is taken to join with one of each other stream."""
    rates = {s.name: observed.tuples[s.name] for s in core.streams if s.name in observed.tuples}
    listed = list(segments)
    spans = {
        (stream.name, column): span
        for stream in dict.fromkeys(core.streams)
        for column, span in _spans(stream, listed, reader, folder).items()
    }
    bare = Core(core.streams, core.windows, core.joins, (), (), ())
    matches = {}
    if len(core.streams) > 1 and len(rates) == len({s.name for s in core.streams}):
        meetings = rows_per_s(bare, Statistics(rates, spans, {core.signature: 1.0}))
        if meetings > 0:
            matches[core.signature] = max(rates.values()) / meetings
    return Statistics(rates, spans, matches)


def _spans(
    stream: StreamDef, segments: list[Segment], reader: SegmentReader, folder: Folder
) -> dict[str, tuple[Value, Value]]:
    """The smallest and largest values among the newest tuples that are stored."""
    own = sorted(
        (s for s in segments if s.table.startswith(f"stem/{stream.name}/")), key=lambda s: s.high
    )
    frames = [reader.read(folder, s).frame for s in own[-SAMPLED:]]
    found: dict[str, tuple[Value, Value]] = {}
    for place, column in enumerate(stream.fields):
        values = [f[name(place)] for f in frames if name(place) in f.columns]
        known = pl.concat(values).drop_nulls() if values else pl.Series()
        if len(known):
            found[column.name] = (known.min(), known.max())  # type: ignore[assignment]
    return found
