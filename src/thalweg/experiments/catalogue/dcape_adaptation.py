"""Balancing, local re-optimisation, both or neither (D-CAPE, figures 7, 8)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from thalweg.adapt.moves.ways import MSLB, PTLB
from thalweg.experiments.dcape.arrivals import Arrivals
from thalweg.experiments.dcape.cluster import Cluster, Ran, Setting
from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sqpr.figures import Draw, curves

NONE, LM, BALANCED = "No-Adapt", "LM-only", "balanced from the start, LM"
FORESEEN = "B with C first from the start"  # what LM changes to, without its delay
SETTINGS: dict[str, tuple[str | None, bool]] = {
    NONE: (None, False),
    LM: (None, True),
    "PTLB-only": (PTLB, False),
    "MSLB-only": (MSLB, False),
    "LM-PTLB": (PTLB, True),
    "LM-MSLB": (MSLB, True),
    BALANCED: (None, True),
    FORESEEN: (None, False),
}


@dataclass(frozen=True)
class Parameters:
    seconds: int = 120
    window_s: float = 20.0
    rate: float = 100.0
    slow_rate: float = 5.0
    change_s: float = 30.0
    machines: int = 7
    buckets: int = 100
    keys: int = 500
    capacity: float = 1_000.0
    seeds: int = 5

    @classmethod
    def quick(cls) -> Parameters:
        return cls(seeds=1)


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    slow = (p.rate, p.slow_rate, p.slow_rate)
    arrivals = Arrivals((p.rate,) * 3, slow, p.change_s)
    ran: dict[str, list[Ran]] = {name: [] for name in SETTINGS}
    for number, (name, (way, local)) in enumerate(SETTINGS.items()):
        for seed in range(p.seeds):
            progress(f"{name}, seed {seed}", (number + seed / p.seeds) / len(SETTINGS))
            setting = Setting(
                arrivals,
                p.window_s,
                p.seconds,
                p.machines,
                p.buckets,
                p.keys,
                p.capacity,
                way=way,
                local=local,
                hot=1 / p.machines if name == BALANCED else 0.5,
                order=(1, 2, 0) if name == FORESEEN else (0, 1, 2),
            )
            ran[name].append(Cluster(setting, seed).run())
    rows = [_row(name, ran, p) for name in SETTINGS]
    return Report(
        "dcape-adaptation",
        "Balancing and local re-optimisation, together and alone (D-CAPE, figures 7, 8)",
        asdict(p),
        rows,
        goals=_goals(rows),
        beside=_beside(rows),
        notes=NOTES,
        figures={"7-throughput": _figure(ran, "results"), "8-tuples": _figure(ran, "tuples")},
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _row(name: str, ran: dict[str, list[Ran]], p: Parameters) -> dict[str, Any]:
    results = _mean([r.results[-1] for r in ran[name]])
    half = _mean([r.results[3 * p.seconds // 4 - 1] for r in ran[name]])
    none = _mean([r.results[-1] for r in ran[NONE]])
    return {
        "setting": name,
        "results": round(results),
        "× No-Adapt": round(results / none, 3),
        "results at ¾ of the run": round(half),
        "most tuples": round(_mean([max(r.tuples) for r in ran[name]])),
        "tuples at the end": round(_mean([r.tuples[-1] for r in ran[name]])),
        "moves": round(_mean([len(r.moves) for r in ran[name]]), 1),
        "shapes changed": round(_mean([r.reshaped for r in ran[name]]), 1),
    }


def _of(rows: list[dict[str, Any]], name: str, column: str = "× No-Adapt") -> float:
    return float(next(r[column] for r in rows if r["setting"] == name))


def _goals(rows: list[dict[str, Any]]) -> list[Goal]:
    both = _of(rows, "LM-MSLB")
    alone = max(_of(rows, "MSLB-only"), _of(rows, LM))
    at_end = _of(rows, "LM-MSLB", "results") / _of(rows, BALANCED, "results")
    return [
        Goal("both (MSLB) over No-Adapt", both, 1.4, "×"),
        Goal("both over the better alone", round(both / alone, 3), 1.0, "×"),
        Goal("both beside a cluster balanced from the start", round(at_end, 3), 0.95, "×"),
        Goal("the source's factor of both over No-Adapt", both, 3.3, "×"),
        Goal("the source's factor of MSLB alone", _of(rows, "MSLB-only"), 2.0, "×"),
        Goal("the source's factor of LM alone", _of(rows, LM), 2.0, "×"),
    ]


def _beside(rows: list[dict[str, Any]]) -> list[Beside]:
    bound = _of(rows, BALANCED)
    return [
        Beside(
            "7",
            "PTLB-only and LM-only each about 2 × No-Adapt, both together 330 % more",
            f"PTLB-only {_of(rows, 'PTLB-only'):.2f} ×, MSLB-only {_of(rows, 'MSLB-only'):.2f} ×, "
            f"LM-only {_of(rows, LM):.2f} ×, LM-PTLB {_of(rows, 'LM-PTLB'):.2f} ×, LM-MSLB "
            f"{_of(rows, 'LM-MSLB'):.2f} ×",
            "the six other machines say their half whatever happens, so even a cluster that is "
            f"balanced from the start says {bound:.2f} × as much here; and what waits when the "
            "rates change came at equal rates, for which all shapes cost about the same: the one "
            f"that LM changes to gives {_of(rows, FORESEEN):.2f} × even from the start, and LM "
            "pays for the change besides. The source gives neither window, capacity nor length of "
            "its runs",
        ),
        Beside(
            "8",
            "with LM far fewer tuples build up; balancing alone hardly lowers the peak",
            f"most tuples: No-Adapt {_of(rows, NONE, 'most tuples'):,.0f}, LM-only "
            f"{_of(rows, LM, 'most tuples'):,.0f}, PTLB-only "
            f"{_of(rows, 'PTLB-only', 'most tuples'):,.0f}, LM-PTLB "
            f"{_of(rows, 'LM-PTLB', 'most tuples'):,.0f}, LM-MSLB "
            f"{_of(rows, 'LM-MSLB', 'most tuples'):,.0f}",
            "as in figure 7: the peak consists of rows from before the change, "
            f"{_of(rows, FORESEEN, 'most tuples'):,.0f} with the later shape from the start",
        ),
    ]


def _figure(ran: dict[str, list[Ran]], what: str) -> Draw:
    lines = {name: [getattr(r, what) for r in found] for name, found in ran.items()}
    seconds = [i + 1.0 for i in range(len(next(iter(lines.values()))[0]))]
    up = "results so far" if what == "results" else "tuples in queues and states"
    return curves(seconds, lines, across="seconds", up=up, title="")


NOTES = (
    "Three streams of Poisson arrivals are joined on one key, A with B, "
    "then C; at 30 s B and C fall to "
    "5 tuples a second. Half of the 100 buckets are on one of seven "
    "machines. A machine makes so many "
    "comparisons a second; joins, windows, states, moves and changes of shape are real.",
)
