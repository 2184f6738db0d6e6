"""A replay by the shared engine: a thread for each source, ticks in between."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from thalweg.engine.replay.job import Rejected, Replay, ReplayError, Status
from thalweg.engine.replay.output import Output
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.state.names import LATE, REJECTED, side_file
from thalweg.engine.shared.tick.executors import Executor, InProcess
from thalweg.engine.sinks.base import SinkOutlet, open_where_it_was
from thalweg.engine.sinks.jsonl import JsonLinesSink
from thalweg.engine.sources.errors import SourceError
from thalweg.engine.sources.feed import Source, Stopped
from thalweg.engine.sources.pace import Pace, PacedFeed
from thalweg.plan.text import plan_text

_POLL_S = 0.1
_SCRIPT = "replay/script"  # under this name, the book says what the data directory is for


def run_shared(job: Replay, sources: Mapping[str, Source], output: Output, folder: Path) -> Status:
    outlet = SinkOutlet()
    durable = job.data_dir is not None
    engine = SharedEngine(folder, _executor(job), outlet=outlet, durable=durable, retained_ticks=0)
    try:
        _check_same_script(job, engine)
        for stream in job.streams.values():
            engine.add_stream(stream)
        engine.add_queries(job.plans)
        _attach(job, engine, outlet, output, durable=durable)
        return _run(job, engine, sources, output)
    finally:
        outlet.close()
        engine.close()


def _executor(job: Replay) -> Executor:
    if job.executor is not None:
        return job.executor
    if job.spark is None:
        return InProcess()
    from thalweg.engine.shared.tick.executors import OnSpark

    return OnSpark(job.spark.sparkContext)


def _check_same_script(job: Replay, engine: SharedEngine) -> None:
    """What is half done was half of something."""
    parts = [f"{q.name}\n{plan_text(q.plan)}" for q in job.plans]
    parts += [repr(s) for s in job.streams.values()]
    found = hashlib.blake2b("\n\n".join(parts).encode(), digest_size=16).hexdigest().encode()
    if engine.store.note(_SCRIPT) not in (None, found):
        raise ReplayError(
            f"{engine.folder} belongs to a replay of other streams or queries: "
            "choose another data directory, or remove it"
        )
    engine.store.write_note(_SCRIPT, found)


def _attach(
    job: Replay, engine: SharedEngine, outlet: SinkOutlet, output: Output, *, durable: bool
) -> None:
    for query in job.queries:
        path = output.path(query.name)
        if engine.store.tick() == (0, None):  # nothing has been done: this is a first run
            path.unlink(missing_ok=True)
        sink = JsonLinesSink(path, durable=durable)
        open_where_it_was(engine.store, query.name, "replay", sink)
        outlet.attach(query.name, "replay", sink)


def _run(
    job: Replay, engine: SharedEngine, sources: Mapping[str, Source], output: Output
) -> Status:
    stop, landed = threading.Event(), threading.Event()
    pace = Pace(list(job.streams.values()), stop)
    errors: list[BaseException] = []

    def feed(name: str, source: Source) -> None:
        try:
            source.run(
                PacedFeed(
                    engine,
                    job.streams[name],
                    pace,
                    stop=stop,
                    largest_backlog=2 * job.tick_rows,
                    landed=landed,
                )
            )
        except Stopped:
            pass
        except BaseException as error:  # raised again where the replay was called
            if isinstance(error, SourceError):
                error.stream = name
            errors.append(error)
            landed.set()

    threads = [
        threading.Thread(target=feed, args=item, name=f"source-{item[0]}", daemon=True)
        for item in sources.items()
    ]
    for thread in threads:
        thread.start()
    try:
        return _tick_to_end(job, engine, output, pace, landed, errors)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _tick_to_end(
    job: Replay,
    engine: SharedEngine,
    output: Output,
    pace: Pace,
    landed: threading.Event,
    errors: list[BaseException],
) -> Status:
    status = Status()
    while True:
        landed.clear()
        if errors:
            raise errors[0]
        is_over = pace.is_over()
        if is_over or engine.landing.backlog() >= job.tick_rows:
            tick = engine.tick(limit=job.tick_rows)
            if tick is not None:
                output.print_below(min(map(engine.watermark, job.streams)))
                status = Status(
                    status.rows_in + tick.rows_in, status.rows_out + tick.rows_out, tick.number
                )
                job.watch(status)
                continue
        if is_over:
            return _judged(status, engine, job.streams)
        landed.wait(_POLL_S)


def _judged(status: Status, engine: SharedEngine, streams: Iterable[str]) -> Status:
    """The status with what did not count."""
    aside = engine.store.inputs.all_set_aside()
    late = {s: n for s in streams if (n := aside.get((s, LATE), 0))}
    rejected = {
        s: Rejected(n, _first_reason(engine.folder / side_file(s, REJECTED)))
        for s in streams
        if (n := aside.get((s, REJECTED), 0))
    }
    return replace(status, late=late, rejected=rejected)


def _first_reason(rejects: Path) -> str:
    with rejects.open(encoding="utf-8") as lines:
        return str(json.loads(next(lines))["reason"])
