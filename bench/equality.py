"""Equality filters over one stream, each for another constant: looked up, not tried one by one."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from bench.auctions import batches
from bench.standing import equalities
from bench.steady import measure
from bench.warm import warmed
from thalweg.engine.session import spark_session
from thalweg.experiments.report import Goal, Progress, Report


@dataclass(frozen=True)
class Parameters:
    queries: int = 100_000
    events: int = 200_000  # a tick, which is a second of event time
    ticks: int = 20  # measured
    cores: int = 2
    seed: int = 7

    @classmethod
    def quick(cls) -> Parameters:
        return cls(queries=10_000, ticks=6)


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    made = ({"O": b["O"]} for b in batches(2 * p.events, p.seed, 1))
    with warmed(spark_session(f"local[{p.cores}]")) as spark:
        row = measure(equalities(p.queries, p.seed), made, spark, 3, p.ticks, progress)
    goals = [
        Goal(f"{p.queries:,} equality filters", row["events/s"], 200_000, "events/s"),
        Goal("median tick", row["median s"], 1.0, "s", at_least=False),
    ]
    return Report("equality", "Equality filters over one stream", asdict(p), [row], goals)
