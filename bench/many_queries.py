"""Many standing queries: the same events and queries in every system, in one run.

`shared` answers what queries have in common once; `unshared` is the same engine without that;
`native` runs a Structured Streaming job for each query; `flink` runs them as one STATEMENT SET.
Two peers are written by hand for these very queries, with their constants in tables: `expert`, one
Structured Streaming job, and `pathway`, one dataflow. All have the same cores and deliver every row
to files; counts and sums of the results are compared, query by query. Peers go as far as the time
limit lets them, the rest is extrapolated and says so.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from bench.comparison import OURS, PEERS, Comparison, Row
from bench.many_queries_plot import by_queries
from bench.warm import warmed
from thalweg.engine.session import spark_session
from thalweg.experiments.report import Goal, Progress, Report

MANY = 10_000  # queries at which throughput and latency have goals
COMPARED = 1_000  # queries at which peers are compared
FACTORS = {"native": 1_000.0, "expert": 3.0, "flink": 300.0, "pathway": 1.0}


@dataclass(frozen=True)
class Parameters:
    queries: tuple[int, ...] = (1, 8, 64, 1_000, 10_000, 100_000)
    overlap: float = 1.0  # the part of the queries that are of a few shapes
    peers: tuple[str, ...] = PEERS  # `none` for none
    events: int = 200_000  # a tick, which is a second of event time
    ticks: int = 12
    windows_s: tuple[int, ...] = (1, 2, 4)
    share: float = 0.02  # of all prices that a query wants, at most
    rows: float = 1.0  # for an event from all queries together, at most
    few_rows: float = 0.02  # the same, where results are few
    limit_s: float = 600.0  # of a peer's run
    unshared_up_to: int = 64
    pairs: int = 9  # of runs with and without sharing
    distinct: int = 40  # queries in pairs without any overlap
    cores: int = 2
    seed: int = 7

    def __post_init__(self) -> None:
        unknown = set(self.peers) - {*PEERS, "none"}
        if unknown:
            raise ValueError(f"there is no peer {', '.join(unknown)}: there are {', '.join(PEERS)}")
        if not 0 <= self.overlap <= 1:
            raise ValueError("overlap is a part of the queries, from 0 to 1")
        if min(self.queries) < 1:
            raise ValueError("there is at least one query")

    @classmethod
    def quick(cls) -> Parameters:
        return cls(
            queries=(1, 8, 1_000), events=20_000, ticks=6, limit_s=120.0, pairs=1, distinct=8
        )


def run(parameters: Parameters, progress: Progress) -> Report:
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        bench = Comparison(parameters, progress, Path(folder))
        bench.write_events()
        with warmed(spark_session(f"local[{parameters.cores}]")) as spark:
            bench.spark = spark
            bench.warm_up()
            bench.compare()
            pairs = bench.pairs() if parameters.pairs else {}
            few = bench.few_results(MANY) if MANY in parameters.queries else []
    goals = [*_goals(parameters, bench), *_goals_of_pairs(pairs), *_goals_of_few(few)]
    rows = [*bench.rows, *(r for of in pairs.values() for r in of), *few]
    title = "Many standing queries, the same events and results in every system"
    figures = {
        "seconds": lambda axes: by_queries(axes, bench.rows, "seconds", "seconds for all events"),
        "query-events": lambda axes: by_queries(
            axes, bench.rows, "query-events/s", "events × queries in a second"
        ),
    }
    return Report(
        "many-queries", title, asdict(parameters), rows, goals, bench.notes, figures=figures
    )


def _goals(parameters: Parameters, bench: Comparison) -> list[Goal]:
    goals = [Goal("runs with other results than shared", bench.differing, 0, at_least=False)]
    ours = bench.measured["shared"]
    if MANY in ours and parameters.overlap == 1:
        tick_s = ours[MANY].median_tick_s(bench.settled)
        what = f"{MANY:,} queries of a few shapes"
        goals.append(Goal(f"{what}, events", parameters.events / tick_s, 200_000, "events/s"))
        goals.append(Goal(f"{what}, median tick", tick_s, 1.0, "s", at_least=False))
    for peer, factor in FACTORS.items():
        ratio = _ratio(bench, peer, COMPARED)
        if ratio is not None:
            how = _how(bench, peer)
            goals.append(
                Goal(f"query-events/s over {peer}, {COMPARED:,} queries{how}", ratio, factor, "x")
            )
    return goals


def _ratio(bench: Comparison, peer: str, queries: int) -> float | None:
    ours, theirs = bench.rate("shared", queries), bench.rate(peer, queries)
    return None if ours is None or theirs is None else ours / theirs


def _how(bench: Comparison, peer: str) -> str:
    """What was measured stands beside what was not."""
    largest = max(bench.measured[peer])
    if largest >= COMPARED:
        return ""
    return f" (extrapolated; measured at {largest:,}: {_ratio(bench, peer, largest):.3g} x)"


def _goals_of_pairs(pairs: dict[str, list[Row]]) -> list[Goal]:
    goals = []
    for case, rows in pairs.items():
        for unit, column in (("tick", "median tick s"), ("CPU", "cpu s")):
            ours, without = ([r[column] for r in rows if r["system"] == system] for system in OURS)
            ratio = median(a / b for a, b in zip(ours, without, strict=True))
            name = f"{case}: {unit} with sharing over without"
            goals.append(Goal(name, ratio, 1.05, "x", at_least=False))
    return goals


def _goals_of_few(few: list[Row]) -> list[Goal]:
    if not few:
        return []
    one, many = few
    name = f"{MANY:,} queries with few results, median tick over one query's"
    ratio = many["median tick s"] / one["median tick s"]
    return [Goal(name, ratio, 2.0, "x", at_least=False)]
