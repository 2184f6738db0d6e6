"""A replay from its sources to its output."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival, admit
from thalweg.engine.changelog import Change
from thalweg.engine.replay.job import Rejected, Replay, ReplayError, Status
from thalweg.engine.replay.output import Output
from thalweg.engine.replay.shared import run_shared
from thalweg.engine.shared.frames import FOREVER
from thalweg.engine.sources import open_source
from thalweg.engine.sources.recording import Recording, record


def replay(job: Replay, *, out: Path | None = None, to: BinaryIO | None = None) -> Status:
    """Each query's JSON lines go to a file in the folder `out`; all of them, merged, to `to`.

    Raises SourceError, ReplayError, and what the engines raise.
    """
    with tempfile.TemporaryDirectory(prefix="thalweg-replay-") as scratch:
        kept = out or (job.data_dir / "printed" if job.data_dir else None)
        output = Output(kept or Path(scratch) / "printed", job.queries, to)
        with closing(output):
            status = _run(job, output, Path(scratch))
            output.print_below(FOREVER)
        return status


def _run(job: Replay, output: Output, scratch: Path) -> Status:
    sources = {
        name: open_source(s, job.spark, job.base_dir, live=False, rows_per_batch=job.tick_rows)
        for name, s in job.streams.items()
    }
    if job.engine == "shared":
        return run_shared(job, sources, output, job.data_dir or scratch / "data")
    recordings = {n: record(source, job.streams[n], scratch) for n, source in sources.items()}
    return _run_whole(job, recordings, output, scratch)


def _run_whole(
    job: Replay, recordings: Mapping[str, Recording], output: Output, scratch: Path
) -> Status:
    """With an engine that takes its whole input at once."""
    inputs = {name: list(r.arrivals(job.streams[name])) for name, r in recordings.items()}
    if job.engine == "reference":
        results = {q.name: reference.evaluate(q.plan, inputs) for q in job.plans}
    else:
        results = _native(job, inputs, scratch)
    for query in job.plans:
        output.write_all(query, results[query.name])
    late = {name: len(admit(job.streams[name], inputs[name]).late) for name in inputs}
    return Status(
        rows_in=sum(len(arrivals) for arrivals in inputs.values()),
        rows_out=sum(len(changes) for changes in results.values()),
        late={name: count for name, count in late.items() if count},
        rejected={
            name: Rejected(len(r.reasons), r.reasons[0])
            for name, r in recordings.items()
            if r.reasons
        },
    )


def _native(
    job: Replay, inputs: Mapping[str, Sequence[Arrival]], scratch: Path
) -> dict[str, list[Change]]:
    from thalweg.engine import native

    assert job.spark is not None
    for query in job.plans:
        try:
            native.check(query.plan)
        except native.Unsupported as error:
            raise ReplayError(f"query {query.name}: {error}") from None
    settings = native.Settings(
        rows_per_file=job.tick_rows,
        partitions=int(job.spark.conf.get("spark.sql.shuffle.partitions") or 1),
    )
    return native.run(job.spark, job.plans, inputs, scratch / "native", settings)
