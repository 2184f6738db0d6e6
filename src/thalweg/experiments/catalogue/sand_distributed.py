"""SAND, figures 6 to 12 by the distributed protocol, beside the centralised placers.

The source's figures are of its distributed versions: a zone for each operator, candidates that the
overlay's routes to the sources have met, distances that were measured by probes. The same trees on
the same topologies are placed by the protocol between simulated peers, one on every host, by the
centralised algorithms, which know all hosts, and at their optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from thalweg.experiments.report import UNEXPLAINED, Beside, Goal, Progress, Report
from thalweg.experiments.sand.measuring import EDGE, EDGE_PLUS, IN_NETWORK, Table
from thalweg.experiments.sand.peers import peers_on
from thalweg.experiments.sand.points import CENTRAL, DISTRIBUTED, Sweep, measure_point, points
from thalweg.experiments.sand.sampling import by_topology
from thalweg.experiments.sand.scenes import make_scene
from thalweg.experiments.sqpr.figures import curves


@dataclass(frozen=True)
class Parameters(Sweep):
    @classmethod
    def quick(cls) -> Parameters:
        return cls(
            seeds=1,
            trees=4,
            nodes=200,
            depths=(3,),
            asd=(0.15, 0.4),
            bounds=(1.25, 3.0),
            selectivities=(0.25, 1.0),
        )


def run(parameters: Parameters, progress: Progress) -> Report:
    asked = list(points(parameters))

    def measure_seed(seed: int, table: Table) -> None:
        scene = make_scene(seed, parameters.nodes)
        peers = peers_on(scene)
        for i, point in enumerate(asked):
            done = (seed + i / len(asked)) / parameters.seeds
            progress(f"topology {seed}, figure {point.figure}, {point.at}, {point.bound}", done)
            measure_point(parameters, scene, peers, point, table)

    table, seeds = by_topology(parameters.seeds, measure_seed)
    parameters = replace(parameters, seeds=seeds)
    return Report(
        "sand-distributed",
        "Bandwidth and stretch by the distributed protocol (SAND, figures 6 to 12)",
        asdict(parameters),
        [_row(table, case) for case in table.cells],
        goals=_goals(parameters, table),
        beside=_beside(parameters, table),
        notes=NOTES,
        figures={
            "8-bandwidth": curves(
                parameters.asd,
                {
                    f"{how}, {bound:g} ms": table.lines(
                        [
                            ("8", f"ASD {asd:g}", f"{bound:g} ms", IN_NETWORK, how)
                            for asd in parameters.asd
                        ],
                        "ratio",
                    )
                    for how in (CENTRAL, DISTRIBUTED)
                    for bound in parameters.bounds_ms
                },
                across="mean distance between sources, of the diameter",
                up="bandwidth, of the baseline's",
                title=f"In-Network, mean and range of {seeds} topologies",
            )
        },
    )


def _row(table: Table, case: tuple[str, ...]) -> dict[str, Any]:
    figure, at, bound, name, how = case
    return {
        "figure": figure,
        "at": at,
        "bound": bound,
        "strategy": name,
        "how": how,
        "trees": table.count(case),
        "bandwidth ratio": table.mean(case, "ratio"),
        "stretch": table.mean(case, "stretch"),
        "at the proxy": table.mean(case, "at_proxy"),
        "in the network": table.mean(case, "between"),
        "at sources": table.mean(case, "at_sources"),
    }


def _pairs(table: Table, figure: str = "") -> list[tuple[str, ...]]:
    cases = [case[:-1] for case in table.cells if case[-1] == DISTRIBUTED]
    return [case for case in cases if not figure or case[0] == figure]


def _mean(table: Table, case: Sequence[str], how: str, what: str = "ratio") -> float:
    return table.mean((*case, how), what)


def _goals(p: Parameters, table: Table) -> list[Goal]:
    """In-Network by the protocol: a worse choice of candidates, or of zones, shows here first."""
    goals = []
    for name, most in ((EDGE_PLUS, 1.05), (IN_NETWORK, 1.05)):
        ratios = [
            _mean(table, case, DISTRIBUTED) / _mean(table, case, CENTRAL)
            for case in _pairs(table)
            if case[-1] == name
        ]
        told = f"{name}: distributed over centralised, worst point"
        goals.append(Goal(told, max(ratios), most, "x", at_least=False))
    below = max(
        _mean(table, (*case[:-1], IN_NETWORK), DISTRIBUTED)
        / _mean(table, (*case[:-1], EDGE), DISTRIBUTED)
        for case in _pairs(table, "6, 7")
    )
    told = "figure 6, distributed: in-network over edge, worst"
    return [*goals, Goal(told, below, 0.97, "x", at_least=False)]


def _by(table: Table, figure: str, what: str, form: str = "{:.2f}") -> str:
    told = []
    for case in _pairs(table, figure):
        values = [form.format(_mean(table, case, how, what)) for how in (DISTRIBUTED, CENTRAL)]
        told.append(f"{', '.join(case[1:])} {values[0]} ({values[1]})")
    return "; ".join(told)


def _slope(p: Parameters, table: Table, bound_ms: float, how: str) -> float:
    line = [
        _mean(table, ("8", f"ASD {asd:g}", f"{bound_ms:g} ms", IN_NETWORK), how) for asd in p.asd
    ]
    return float(np.polyfit(p.asd, line, 1)[0])


def _places(table: Table, what: str, how: str) -> dict[str, float]:
    """Over all selectivities, of a cluster and of a star."""
    found: dict[str, list[float]] = {}
    for case in _pairs(table, "11, 12"):
        found.setdefault(case[1].partition(",")[0], []).append(_mean(table, case, how, what))
    return {places: float(np.mean(values)) for places, values in found.items()}


def _beside(p: Parameters, table: Table) -> list[Beside]:
    slopes = {
        how: [_slope(p, table, bound_ms, how) for bound_ms in p.bounds_ms]
        for how in (DISTRIBUTED, CENTRAL)
    }
    inside = {how: _places(table, "between", how) for how in (DISTRIBUTED, CENTRAL)}
    more = {how: inside[how]["cluster"] > inside[how]["star"] for how in inside}
    return [
        Beside(
            "6",
            "Edge+ and In-Network below Edge everywhere; a cluster has the greatest scope",
            "ratios by the protocol (centralised): " + _by(table, "6, 7", "ratio"),
            _LOSES,
        ),
        Beside(
            "6",
            "Edge+ and In-Network hardly differ for star and uniform",
            "Edge+ less In-Network under loose bounds: " + "; ".join(_apart(p, table)),
            "where candidates are the peers on routes, few of them are better than the proxy or "
            "a source; one who knows all hosts finds some that are",
        ),
        Beside(
            "7",
            "Edge has the largest stretch under loose bounds; alike under tight ones",
            "stretch by the protocol (centralised): " + _by(table, "6, 7", "stretch"),
        ),
        Beside(
            "8",
            "the ratio rises far faster under a tight bound",
            f"slopes at {p.bounds_ms[0]:g} and {p.bounds_ms[-1]:g} ms: by the protocol "
            f"{slopes[DISTRIBUTED][0]:.2f} and {slopes[DISTRIBUTED][-1]:.2f}, centralised "
            f"{slopes[CENTRAL][0]:.2f} and {slopes[CENTRAL][-1]:.2f}",
        ),
        Beside(
            "9",
            "falls with looser bounds, then levels off; lower for deeper, higher for wider trees",
            "ratios by the protocol (centralised): " + _by(table, "9, 10", "ratio"),
        ),
        Beside(
            "10",
            "rises with looser bounds, then levels off; more for deeper and wider trees",
            "stretch by the protocol (centralised): " + _by(table, "9, 10", "stretch"),
        ),
        Beside(
            "11",
            "the ratio rises with the selectivity, the stretch falls; a star has higher ratios",
            "ratios: "
            + _by(table, "11, 12", "ratio")
            + "; stretch: "
            + _by(table, "11, 12", "stretch"),
        ),
        Beside(
            "12",
            "more operators in the network for a cluster than for a star",
            "; ".join(
                f"{how}: cluster {inside[how]['cluster']:.2f}, star {inside[how]['star']:.2f}"
                for how in inside
            ),
            _why_places(more),
        ),
    ]


_LOSES = (
    "with one zone for a whole tree, Edge+ by the protocol is the centralised algorithm, to the "
    "host (a test): what it loses is what zones of one level don't tell each other. Under a tight "
    "bound that is most, as a MAP has one delay for each place, and no choice between late and dear"
)


def _apart(p: Parameters, table: Table) -> list[str]:
    told = []
    for places in ("star", "uniform"):
        case = ("6, 7", places, f"{p.loose:g} × direct")
        gaps = [
            _mean(table, (*case, EDGE_PLUS), how) - _mean(table, (*case, IN_NETWORK), how)
            for how in (DISTRIBUTED, CENTRAL)
        ]
        told.append(f"{places} {gaps[0]:+.3f} by the protocol, {gaps[1]:+.3f} centralised")
    return told


def _why_places(more: dict[str, bool]) -> str:
    if more[DISTRIBUTED] and not more[CENTRAL]:
        return (
            "as in the source where candidates are those that routes meet, and not where all hosts "
            "are: then gateways next to sources and proxy win"
        )
    if more[DISTRIBUTED]:
        return ""
    return UNEXPLAINED + "; knowing only the peers on its routes does not change it"


NOTES = (
    "*Distributed*: every host is a peer; zones, probes, MAPs and decisions are simulated message "
    "by message until all is still. Candidates of In-Network are the peers that the routes to a "
    "tree's sources met (4.4). *Centralised*: the same algorithms over all hosts at once.",
    "Edge by itself does not look at distances; with a bound it does, to keep it.",
)
