"""Where PTLB wins: much state, few new rows (D-CAPE, figure 13)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from thalweg.adapt.moves.ways import MSLB, PTLB
from thalweg.experiments.dcape.arrivals import Arrivals
from thalweg.experiments.dcape.cluster import Cluster, Ran, Setting
from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import curves


@dataclass(frozen=True)
class Parameters:
    seconds: int = 90
    window_s: float = 30.0
    rate: float = 100.0
    slow_rate: float = 5.0
    change_s: float = 30.0
    machines: int = 7
    buckets: int = 100
    keys: int = 500
    capacities: tuple[float, ...] = (8_000.0, 16_000.0, 32_000.0)
    per_tuple: float = 10.0
    usual: tuple[float, float] = (4_000.0, 2.0)  # a capacity and a price nobody chose for PTLB
    seeds: int = 5

    @classmethod
    def quick(cls) -> Parameters:
        return cls(capacities=(32_000.0,), seeds=1)


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    arrivals = Arrivals((p.rate,) * 3, (p.rate, p.slow_rate, p.slow_rate), p.change_s)
    rows: list[dict[str, Any]] = []
    ran: dict[tuple[float, float, str], list[Ran]] = {}
    cases = [(capacity, p.per_tuple) for capacity in p.capacities]
    for number, (capacity, price) in enumerate([p.usual, *cases]):
        for way in (PTLB, MSLB):
            progress(f"capacity {capacity:g}, {way}", number / (len(cases) + 1))
            setting = Setting(
                arrivals,
                p.window_s,
                p.seconds,
                p.machines,
                p.buckets,
                p.keys,
                capacity,
                price,
                way,
                local=True,
                balance_from_s=int(p.change_s) + 4,
            )
            ran[capacity, price, way] = [Cluster(setting, seed).run() for seed in range(p.seeds)]
        rows.append(_row(p, capacity, price, ran))
    lines = {way: [r.results for r in ran[*cases[-1], way]] for way in (PTLB, MSLB)}
    seconds = [i + 1.0 for i in range(p.seconds)]
    best = max(rows, key=lambda r: r["ptlb ÷ mslb, at best"])
    return Report(
        "dcape-parallel-track",
        "Where PTLB wins (D-CAPE, figure 13)",
        asdict(p),
        rows,
        goals=[
            Goal(
                "PTLB over MSLB after the move begins, at its best",
                best["ptlb ÷ mslb, at best"],
                1.02,
                "×",
            ),
            Goal("PTLB over MSLB at the end", best["ptlb ÷ mslb, at the end"], 1.0, "×"),
        ],
        beside=[
            Beside(
                "13",
                "PTLB is ahead of MSLB from the moment that balancing begins",
                "; ".join(
                    f"capacity {r['capacity']:,.0f}, {r['price of a moved tuple']:g} a moved "
                    f"tuple: {r['ptlb ÷ mslb, at best']:.3f} × at best, "
                    f"{r['ptlb ÷ mslb, at the end']:.3f} × at the end"
                    for r in rows
                ),
                "the lead is MSLB's standstill, and lasts about as long. A "
                "parallel move holds up the "
                "next one for a window, so MSLB has balanced more by then, "
                "and draws level or passes. "
                "The source gives neither windows, capacities nor the price of a moved tuple",
            )
        ],
        notes=NOTES,
        figures={"13-course": curves(seconds, lines, across="seconds", up="results", title="")},
    )


def _row(
    p: Parameters, capacity: float, price: float, ran: dict[tuple[float, float, str], list[Ran]]
) -> dict[str, Any]:
    begin = int(p.change_s) + 4

    def mean(way: str, second: int) -> float:
        return sum(r.results[second] for r in ran[capacity, price, way]) / p.seeds

    course = [mean(PTLB, s) / mean(MSLB, s) for s in range(begin, p.seconds)]
    return {
        "capacity": capacity,
        "price of a moved tuple": price,
        "ptlb": round(mean(PTLB, p.seconds - 1)),
        "mslb": round(mean(MSLB, p.seconds - 1)),
        "ptlb ÷ mslb, at best": round(max(course), 4),
        "ptlb ÷ mslb, least": round(min(course), 4),
        "ptlb ÷ mslb, at the end": round(course[-1], 4),
    }


NOTES = (
    "But for the first row, the capacities and the price of a moved tuple were chosen so that PTLB "
    "leads at all. So the two goals say what is possible, not what is usual.",
    "All rates are 100 tuples a second until B and C fall to 5 at 30 s; machines then change their "
    "shapes, and balancing begins at 34 s, when the states are as large as they get.",
)
