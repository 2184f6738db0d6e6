"""Network traffic of joins between peers: DHTJoin, figures 5.1(a), (b) and (c), beside RJoin.

Table 5.1's size: 1,024 nodes, 10 relations of 10 attributes, Zipf 0.9 over 1,000 values, windows of
50 s. All protocols run, message by message; nothing is modelled.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from thalweg.experiments.p2p.play import (
    ACKNOWLEDGEMENTS,
    AS_PRINTED,
    DHTJOIN,
    GATHERING,
    RESULTS,
    RJOIN,
    Case,
    Seen,
    play,
)
from thalweg.experiments.p2p.workload import Zipf, arrivals, query
from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.overlay.generator import Generator, seed_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Parameters:
    nodes: int = 1_024
    streams: int = 10
    attributes: int = 10
    values: int = 1_000
    zipf: float = 0.9
    window_s: float = 50.0
    duration_s: float = 60.0
    rates: tuple[int, ...] = (30, 45, 60)
    queries_per_5min: tuple[int, ...] = (2, 3, 5)
    joins: tuple[int, ...] = (1, 2, 3)
    seeds: int = 1

    def __post_init__(self) -> None:
        if min(*self.rates, *self.queries_per_5min, *self.joins, self.seeds, self.nodes) < 1:
            raise ValueError("rates, queries, joins, nodes and seeds are 1 or more")
        if max(self.joins) >= self.streams or self.attributes < 2:
            raise ValueError("a query joins different relations, by one of two attributes or more")

    @classmethod
    def quick(cls) -> Parameters:
        return cls(nodes=128, duration_s=30.0, rates=(30, 60), queries_per_5min=(5,), joins=(1, 2))


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    middle = p.queries_per_5min[len(p.queries_per_5min) // 2]
    cases = [("5.1(a)", rate, rate, middle, 2) for rate in p.rates]
    cases += [("5.1(b)", count, p.rates[0], count, 2) for count in p.queries_per_5min]
    cases += [("5.1(c)", joins, p.rates[0], middle, joins) for joins in p.joins]
    rows = []
    for i, (figure, at, rate, queries, joins) in enumerate(cases):
        progress(f"figure {figure} at {at}", i / len(cases))
        runs = [_runs(p, rate, queries, joins, seed) for seed in range(p.seeds)]
        rows.append(_row(figure, at, rate, runs))
    return Report(
        "dhtjoin-traffic",
        "Network traffic of joins between peers (DHTJoin 5.1)",
        asdict(parameters),
        rows,
        goals=_goals(rows),
        beside=_beside(rows),
        notes=NOTES,
        figures={
            "5.1a-rate": lambda axes: _draw(axes, rows, "5.1(a)", "tuples/s, all relations"),
            "5.1b-queries": lambda axes: _draw(axes, rows, "5.1(b)", "queries in 5 minutes"),
            "5.1c-joins": lambda axes: _draw(axes, rows, "5.1(c)", "joins in a query"),
        },
    )


def _runs(p: Parameters, rate: int, queries: int, joins: int, seed: int) -> dict[str, Seen]:
    generator = Generator(seed_of(seed, "traffic"))
    values = Zipf(p.values, p.zipf)
    came = list(arrivals(generator, rate, p.duration_s, p.streams, p.attributes, values))
    # All come in the first half, so that they have time to work.
    asked = []
    for i in range(queries):
        made = query(
            Generator(seed_of(seed, "query", i)),
            f"q{i}",
            f"n{(i * 271) % p.nodes}",
            joins,
            type_2=i % 2 == 1,
            streams=p.streams,
            attributes=p.attributes,
            window=int(p.window_s * 1_000),
            eager=True,
        )
        asked.append((int(p.duration_s / 2 * i / queries * 1e6), made))
    case = Case(DHTJOIN, p.nodes, came, asked, seed)
    remembering = replace(AS_PRINTED, remember_owners=True)
    return {
        "DHTJoin": play(case),
        "DHTJoin, owners remembered": play(replace(case, settings=remembering)),
        "RJoin": play(replace(case, method=RJOIN)),
        "gathering": play(replace(case, method=GATHERING)),
    }


def _row(figure: str, at: int, rate: int, runs: list[dict[str, Seen]]) -> dict[str, Any]:
    count = len(runs)
    row: dict[str, Any] = {"figure": figure, "at": at, "tuples/s": rate}
    for name in runs[0]:
        row[name] = round(sum(r[name].traffic for r in runs) / count)
    dht, rival = [r["DHTJoin"] for r in runs], [r["RJoin"] for r in runs]
    tuples = sum(s.tuples for s in dht)
    row["RJoin / DHTJoin"] = round(row["RJoin"] / row["DHTJoin"], 1)
    row["DHTJoin per tuple"] = round(sum(s.traffic for s in dht) / tuples, 2)
    row["RJoin per tuple"] = round(sum(s.traffic for s in rival) / tuples, 2)
    row["acknowledgements"] = round(sum(s.count(ACKNOWLEDGEMENTS) for s in dht) / count)
    row["results"] = round(sum(s.results for s in dht) / count)
    row["result messages"] = round(sum(s.count(RESULTS) for s in dht) / count)
    row["RJoin: result messages"] = round(sum(s.count(RESULTS) for s in rival) / count)
    return row


def _of(rows: list[dict[str, Any]], figure: str) -> list[dict[str, Any]]:
    return [r for r in rows if r["figure"] == figure]


def _goals(rows: list[dict[str, Any]]) -> list[Goal]:
    least = min(r["RJoin"] / (r["DHTJoin"] + r["acknowledgements"]) for r in rows)
    return [
        Goal(
            "RJoin's messages for one of DHTJoin, acknowledgements included, at least",
            round(least, 2),
            3.0,
        )
    ]


def _beside(rows: list[dict[str, Any]]) -> list[Beside]:
    def told(figure: str) -> str:
        return "; ".join(
            f"{r['at']}: {r['DHTJoin']:,} and {r['RJoin']:,}" for r in _of(rows, figure)
        )

    per_tuple = [r["RJoin per tuple"] for r in rows]
    return [
        Beside(
            "5.1(a)",
            "both grow with the rate of tuples; DHTJoin sends significantly fewer (no numbers)",
            told("5.1(a)"),
            f"RJoin sends {min(per_tuple):.0f} to {max(per_tuple):.0f} messages a tuple: 20 keys "
            "(10 attributes, each by name and by value), visited in one walk along the ring",
        ),
        Beside(
            "5.1(b)",
            "more queries, more rewriting in RJoin; DHTJoin grows where attributes are new",
            told("5.1(b)"),
        ),
        Beside(
            "5.1(c)",
            "more joins, more traffic; in DHTJoin only where attributes are new",
            told("5.1(c)"),
        ),
    ]


NOTES = (
    "Messages are hops: a message that is passed on along the ring counts once for each node that "
    "passes it. Final results and acknowledgements are columns of their own: the source has no "
    "acknowledgements, and both methods send the same results. DHTJoin batches the results of one "
    "probe in one message, RJoin sends each for itself.",
    "The source gives the rate of a stream (λᵢ) and draws a relation for each tuple; the rates "
    "here are of all relations together. Its figures can't be read to the number.",
    "*owners remembered*: who answered for a bucket is asked directly the next time, one hop "
    "instead of several. *gathering* sends every tuple that a query wants straight to one node.",
)


def _draw(axes: Axes, rows: list[dict[str, Any]], figure: str, label: str) -> None:
    shown = _of(rows, figure)
    at = [r["at"] for r in shown]
    marks = ("o-", "s--", "v-", "x:")
    names = ("DHTJoin", "DHTJoin, owners remembered", "RJoin", "gathering")
    for name, mark in zip(names, marks, strict=True):
        axes.plot(at, [r[name] for r in shown], mark, label=name)
    axes.set_yscale("log")
    axes.set_xlabel(label)
    axes.set_ylabel("messages")
    axes.set_xticks(at)
    axes.legend()
