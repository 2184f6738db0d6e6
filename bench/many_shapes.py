"""Queries of many different joins on the same few streams: nothing to merge but the SteMs."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from bench.auctions import batches
from bench.standing import distinct_joins
from bench.steady import measure
from bench.warm import warmed
from thalweg.engine.session import spark_session
from thalweg.experiments.report import Goal, Progress, Report


@dataclass(frozen=True)
class Parameters:
    queries: int = 1_000
    shapes: int = 400
    events: int = 2_000  # a tick, which is a second of event time
    windows_s: tuple[int, ...] = (10, 20, 30)
    share: float = 0.02  # of all prices that a query wants
    ticks: int = 20  # measured, after the windows have filled
    cores: int = 2
    seed: int = 7

    @classmethod
    def quick(cls) -> Parameters:
        return cls(queries=100, shapes=40, windows_s=(2, 4), ticks=6)


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    queries = distinct_joins(p.queries, p.shapes, p.share, p.windows_s, p.seed)
    made = batches(p.events, p.seed, max(p.windows_s))
    with warmed(spark_session(f"local[{p.cores}]")) as spark:
        row = measure(queries, made, spark, max(p.windows_s), p.ticks, progress)
    name = f"median tick, {p.queries:,} queries of {p.shapes:,} joins, {p.events:,} new events"
    goals = [Goal(name, row["median s"], 2.0, "s", at_least=False)]
    return Report("many-shapes", "Many different joins", asdict(p), [row], goals)
