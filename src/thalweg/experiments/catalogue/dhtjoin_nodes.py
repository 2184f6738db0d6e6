"""Messages and bytes of joins between peers by the number of nodes, 64 to 4,096: beyond DHTJoin.

The workload of table 5.1 at one rate, on rings of different sizes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from thalweg.experiments.p2p.play import AS_PRINTED, DHTJOIN, GATHERING, RJOIN, Case, Seen, play
from thalweg.experiments.p2p.workload import Zipf, arrivals, query
from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.overlay.generator import Generator, seed_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WAYS = ("DHTJoin", "DHTJoin, owners remembered", "RJoin", "gathering")


@dataclass(frozen=True)
class Parameters:
    nodes: tuple[int, ...] = (64, 256, 1_024, 4_096)
    rate: float = 30.0
    duration_s: float = 20.0
    queries: int = 3
    seeds: int = 1

    def __post_init__(self) -> None:
        if min(*self.nodes, self.queries, self.seeds) < 1 or self.rate * self.duration_s < 1:
            raise ValueError("nodes, queries, seeds and tuples are 1 or more")

    @classmethod
    def quick(cls) -> Parameters:
        return cls(nodes=(32, 128), duration_s=10.0)


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    rows = []
    for i, nodes in enumerate(p.nodes):
        progress(f"{nodes} nodes", i / len(p.nodes))
        runs = [_runs(p, nodes, seed) for seed in range(p.seeds)]
        rows += [_row(nodes, way, [r[way] for r in runs]) for way in WAYS]
    return Report(
        "dhtjoin-nodes",
        "Messages and bytes by the number of nodes (beyond DHTJoin)",
        asdict(parameters),
        rows,
        goals=_goals(p, rows),
        beside=[
            Beside(
                "2.2.3.1, 4.3.2",
                "2k·O(log n) hops a tuple in RJoin, O(log n) for each indexed attribute in DHTJoin",
                "; ".join(
                    f"{r['nodes']}: {r['messages a tuple']} ({r['way']})"
                    for r in rows
                    if r["way"] in ("DHTJoin", "RJoin")
                ),
                "multiSend visits the 2k keys in one walk, so a key costs the hops from one to the "
                "next, log₂(n/2k)/2 on average",
            )
        ],
        notes=NOTES,
        figures={"messages": lambda axes: _draw(axes, rows)},
    )


def _runs(p: Parameters, nodes: int, seed: int) -> dict[str, Seen]:
    generator = Generator(seed_of(seed, "nodes"))
    came = list(arrivals(generator, p.rate, p.duration_s, 10, 10, Zipf(1_000, 0.9)))
    asked = [
        (
            0,
            query(
                Generator(seed_of(seed, "query", i)),
                f"q{i}",
                f"n{i}",
                2,
                type_2=i % 2 == 1,
                streams=10,
                attributes=10,
                window=50_000,
                eager=True,
            ),
        )
        for i in range(p.queries)
    ]
    case = Case(DHTJOIN, nodes, came, asked, seed, count_bytes=True, settle_s=15.0)
    return {
        "DHTJoin": play(case),
        "DHTJoin, owners remembered": play(
            replace(case, settings=replace(AS_PRINTED, remember_owners=True))
        ),
        "RJoin": play(replace(case, method=RJOIN)),
        "gathering": play(replace(case, method=GATHERING)),
    }


def _row(nodes: int, way: str, runs: list[Seen]) -> dict[str, Any]:
    tuples = sum(s.tuples for s in runs)
    spread = sum(s.kinds["query-spreading", "Spread"] for s in runs)
    return {
        "nodes": nodes,
        "way": way,
        "messages a tuple": round(sum(s.traffic for s in runs) / tuples - spread / tuples, 2),
        "bytes a tuple": round(sum(s.bytes for s in runs) / tuples),
        "to spread the queries": round(spread / len(runs)),
        "busiest node, messages": max(s.busiest for s in runs),
        "results": round(sum(s.results for s in runs) / len(runs)),
    }


def _goals(p: Parameters, rows: list[dict[str, Any]]) -> list[Goal]:
    by = {(r["nodes"], r["way"]): r["messages a tuple"] for r in rows}
    least = min(by[n, "RJoin"] / by[n, "DHTJoin"] for n in p.nodes)
    return [Goal("RJoin's messages for one of DHTJoin, at least", round(least, 1), 3.0)]


NOTES = (
    "Messages a tuple leave out spreading the queries (n − 1 messages each), final results and "
    "acknowledgements; bytes are of everything.",
    "The busiest node shows what gathering costs: one node receives all.",
    "In DHTJoin a query takes a second or so to reach all nodes, and what comes before is not "
    "indexed for it: hence fewer results here. With tuples from 3 s on all ways find the same "
    "ones.",
)


def _draw(axes: Axes, rows: list[dict[str, Any]]) -> None:
    for way in WAYS:
        shown = [r for r in rows if r["way"] == way]
        axes.plot(
            [r["nodes"] for r in shown], [r["messages a tuple"] for r in shown], "o-", label=way
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("nodes")
    axes.set_ylabel("messages a tuple")
    axes.legend()
