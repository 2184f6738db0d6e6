"""CPU of the benches' ticks in two versions, which take turns.

    python scripts/compare_versions.py BEFORE AFTER [PIECE…] [--core 1] [--spark]

BEFORE and AFTER are checkouts (`git worktree add --detach ../before COMMIT`). For each piece both
versions run an engine side by side; once they have warmed up they take turns, so many ticks each,
nine times. What other work does to a core then happens to both. Counted are user and system seconds
of a version's whole family of processes. Ticks have two tasks, which run in the engine's process:
Spark's own share is the same in all versions and would only hide differences. With `--spark` they
are jobs. `--core N` pins both versions to one core.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

# Of each: ticks before the first turn, and ticks a turn.
PIECES = {
    "tick 1,000": (20, 40),
    "tick 20,000": (12, 24),
    "tick 200,000": (8, 5),
    "tick 40 joins": (10, 16),
    "join": (3, 3),
    "many-queries 1": (5, 5),
    "many-queries 1,000": (5, 5),
    "many-queries 10,000": (5, 4),
    "many-shapes": (4, 2),
}
JOIN_FILES = 31
TASKS = 2
HERE = Path(__file__).resolve()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs=2, type=Path)
    parser.add_argument("pieces", nargs="*", default=list(PIECES))
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--core", type=int)
    parser.add_argument("--spark", action="store_true")
    of = parser.parse_args()
    if of.core is not None:
        os.sched_setaffinity(0, {of.core})
    print(f"| piece | {of.trees[0].name} s | {of.trees[1].name} s | median of ratios | ratios |")
    print("|---|---|---|---|---|")
    for piece in of.pieces:
        before, after = compare(piece, of.trees, of.pairs, of.spark)
        ratios = sorted(b / a for a, b in zip(before, after, strict=True))
        print(
            f"| {piece} | {median(before):.2f} | {median(after):.2f} | {median(ratios):.2f} "
            f"| {ratios[0]:.2f}-{ratios[-1]:.2f} |",
            flush=True,
        )


def compare(piece: str, trees: list[Path], pairs: int, spark: bool) -> list[list[float]]:
    """Seconds of each version's turns."""
    workers = [start(piece, tree, pairs, spark) for tree in trees]
    for worker in workers:
        turn(worker)  # the windows fill
    seconds: list[list[float]] = [[], []]
    for number in range(pairs):
        for i in (0, 1) if number % 2 == 0 else (1, 0):
            seconds[i].append(turn(workers[i]))
    for worker in workers:
        worker.communicate()
    return seconds


def start(piece: str, tree: Path, pairs: int, spark: bool) -> subprocess.Popen[str]:
    path = os.pathsep.join((str(tree / "src"), str(tree)))
    return subprocess.Popen(
        [sys.executable, "-c", f"{WORKER}\nwork({piece!r}, {pairs}, {spark})", str(HERE)],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


WORKER = "import runpy, sys; work = runpy.run_path(sys.argv[1])['work']"


def turn(worker: subprocess.Popen[str]) -> float:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write("\n")
    worker.stdin.flush()
    for line in worker.stdout:
        if line.startswith("turn "):
            return float(line.split()[1])
    raise SystemExit("a version ended early")


# --- in the process of one version


def work(piece: str, pairs: int, spark: bool) -> None:
    """Ticks when told to, and says what they took."""
    from bench.measure import CpuWatch

    warmup, a_turn = PIECES[piece]
    with executor(spark) as runs, tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        ticks = ticks_of(piece, runs, Path(folder))
        for number in [warmup] + [a_turn] * pairs:
            made = [next(ticks) for _ in range(number)]
            sys.stdin.readline()
            cpu = CpuWatch()
            for tick in made:
                tick()
            print("turn", cpu.seconds, flush=True)


@contextmanager
def executor(spark: bool) -> Iterator[Any]:
    try:
        from thalweg.engine.shared.tick.executors import InProcess, OnSpark
    except ImportError:  # where it was up to 0.1
        from thalweg.engine.shared.executors import InProcess, OnSpark  # type: ignore[no-redef]
    if not spark:
        yield InProcess(TASKS)
        return
    from bench.warm import warmed
    from thalweg.engine.session import spark_session

    with warmed(spark_session(f"local[{TASKS}]")) as session:
        yield OnSpark(session.sparkContext)


def ticks_of(piece: str, executor: Any, folder: Path) -> Iterator[Callable[[], object]]:
    from bench import auctions, join, standing, tick
    from bench.systems.shared import Running

    kind, _, of = piece.partition(" ")
    if kind == "tick":
        joins, events = (40, 1_000) if of == "40 joins" else (1, int(of.replace(",", "")))
        push = engine_with(tick.queries(joins), executor, folder)
        for opened, closed in tick.batches(events, 7):
            yield lambda o=opened, c=closed: push({"O": o, "C": c})
    elif kind == "join":
        push = engine_with(join.CQL, executor, folder)
        made = join.Parameters(events=200_000 * JOIN_FILES, rows_per_file=100_000)
        join._write(made, folder / "files")
        files = [sorted((folder / "files" / s).iterdir()) for s in join.STREAMS]
        for pair in zip(*files, strict=True):
            yield lambda p=pair: push(read(dict(zip(join.STREAMS, p, strict=True))))
    else:
        if kind == "many-queries":
            count = int(of.replace(",", ""))
            queries = standing.draw(count, 1.0, min(0.02, 1 / count), (1, 2, 4), 7)
            batches = auctions.batches(200_000, 7, 4)
        else:
            queries = standing.distinct_joins(1_000, 400, 0.02, (2, 4), 7)
            batches = auctions.batches(2_000, 7, 4)
        running = Running(queries, executor, folder)
        for batch in batches:
            yield lambda b=batch: running.tick(b)


def read(files: dict[str, Path]) -> dict[str, Any]:
    import polars as pl

    return {stream: pl.read_parquet(file) for stream, file in files.items()}


def engine_with(script: str, executor: Any, folder: Path) -> Callable[[dict[str, Any]], object]:
    """An engine that runs the script, with a Parquet sink for each query."""
    from thalweg.cql import compile_script
    from thalweg.engine.shared.engine import SharedEngine
    from thalweg.engine.sinks.base import SinkOutlet, open_where_it_was
    from thalweg.engine.sinks.parquet import ParquetSink

    compiled, outlet = compile_script(script), SinkOutlet()
    engine = SharedEngine(folder / "data", executor, outlet=outlet)
    for stream in compiled.catalog.streams():
        engine.add_stream(stream)
    for query in compiled.queries:
        sink = ParquetSink(folder / query.name)
        open_where_it_was(engine.store, query.name, "parquet", sink)
        outlet.attach(query.name, "parquet", sink)
    engine.add_queries(compiled.queries)

    def push(batch: dict[str, Any]) -> object:
        for stream, rows in batch.items():
            engine.push(stream, rows)
        return engine.tick()

    return push


if __name__ == "__main__":
    main()
