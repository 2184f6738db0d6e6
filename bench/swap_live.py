"""Joins across live nodes (COSMOS 5.4, figures 5.5, 5.12, 5.14): SwAP beside both static plans.

R, S and T are at home at n1, n2 and n3, which have a share of a core each (they are stopped and let
go on in turns); the query is submitted at n4. R and T are there when S begins to come, as fast as
n2 reads it. R ⋈ S is joined at n1, S ⋈ T at n3. In figure 5.14 the loaded node changes when half of
S has been sent on; the source does it by the clock. Beside it stands the simulator's figure, whose
rows cost more: only the order of the methods and their shares can be compared.
"""

from __future__ import annotations

import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from bench.nodes import NodeProcess, await_, network
from bench.slowed import Slowed
from thalweg.experiments.report import Goal, Progress, Report
from thalweg.experiments.swap.methods import METHODS, R_FIRST, STATIC, SWAP, T_FIRST
from thalweg.experiments.swap.running import played
from thalweg.experiments.swap.setting import Conditions, Setting, values

ROUTING = {SWAP: "both", R_FIRST: "fixed:n1,n3", T_FIRST: "fixed:n3,n1"}
LOOK_EVERY_S = 0.2


@dataclass(frozen=True)
class Parameters:
    scale: float = 0.1  # of 10,000, 100,000 and 10,000 rows
    share: float = 0.5  # of a core, that n1, n2 and n3 have
    jobs: int = 6  # that share a loaded node's
    seed: int = 1

    @classmethod
    def quick(cls) -> Parameters:
        return cls(scale=0.01)


@dataclass(frozen=True)
class Figure:
    name: str
    selectivities: tuple[tuple[float, float], ...]
    loaded: tuple[int, int] | None = None  # the node that others share, then another

    def setting(self, p: Parameters) -> Setting:
        conditions: tuple[Conditions, ...] = (Conditions(),)
        if self.loaded is not None:
            jobs = [tuple(p.jobs if i == at else 1 for i in range(3)) for at in self.loaded]
            conditions = (Conditions(jobs=jobs[0]), Conditions(70.0, jobs=jobs[1]))  # type: ignore[arg-type]
        return Setting(self.selectivities, conditions, scale=p.scale, seed=p.seed)


FIGURES = (
    Figure("5.5 200 %", ((2.0, 1.0),)),
    Figure("5.5 20 %", ((0.2, 1.0),)),
    Figure("5.12", ((0.2, 2.0), (2.0, 0.2))),
    Figure("5.14", ((0.1, 0.1),), loaded=(2, 0)),
)


def measure(
    p: Parameters, nodes: list[NodeProcess], figure: Figure, method: str, run: int
) -> dict[str, Any]:
    proxy, streams = nodes[3], [f"{name}{run}" for name in "RST"]
    setting = figure.setting(p)
    for node, stream in zip(nodes, streams, strict=False):
        node.cql(f"CREATE STREAM {stream} (v BIGINT) TIMESTAMP BY ts BIGINT")
    await_(lambda: len(proxy.get("/streams")) == 3 * (run + 1), "news of the streams")
    r, s, t = streams
    query = (
        f"CREATE QUERY q{run} AS SELECT {r}.v FROM {r} [Unbounded], {s} [Unbounded], "
        f"{t} [Unbounded] WHERE {r}.v = {s}.v AND {s}.v = {t}.v"
    )
    proxy.cql(query, {"thalweg-plan": "swap", "thalweg-routing": ROUTING[method]})
    placed = _placed(proxy, run)
    id_ = placed["id"]
    numbers = {each["nodes"][0]: each["number"] for each in placed["graph"]}
    found = values(setting)
    for place in (0, 2):
        _push(nodes[place], streams[place], found[place])
        await_(lambda n=nodes[place]: _fed(n, id_), "what is stored")  # type: ignore[misc]
    loads = [1, 1, 1] if figure.loaded is None else _jobs(p, figure.loaded[0])
    slow = Slowed(nodes[:3], [p.share / jobs for jobs in loads])
    begun = time.perf_counter()
    with slow.slowed():
        pushing = threading.Thread(target=_push, args=(nodes[1], s, found[1]))
        pushing.start()
        while proxy.get(f"/queries/q{run}")["frontier"] != "end":
            if figure.loaded is not None and _sent(nodes[1], id_) > len(found[1]) / 2:
                slow.shares = [p.share / jobs for jobs in _jobs(p, figure.loaded[1])]
            time.sleep(LOOK_EVERY_S)
        took_s = time.perf_counter() - begun
        pushing.join()
    ways = _ways(nodes[1], id_)
    rows = proxy.get(f"/queries/q{run}")["rows"]
    proxy.cql(f"DROP QUERY q{run}")
    simulated = played(setting, METHODS[method])
    return {
        "figure": figure.name,
        "method": method,
        "s": round(took_s, 1),
        "to n1 first": round(ways[numbers["n1"]] / max(1, sum(ways.values())), 3),
        "results": rows,
        "simulated s": round(simulated.response_s, 1),
        "simulated to n1 first": round(simulated.share_1, 3),
        "simulated results": simulated.results,
    }


def _jobs(p: Parameters, loaded: int) -> list[int]:
    return [p.jobs if place == loaded else 1 for place in range(3)]


def _push(node: NodeProcess, stream: str, found: list[int]) -> None:
    rows = pl.DataFrame({"ts": range(1, len(found) + 1), "v": found})
    node.push(stream, rows)
    node.post(f"/streams/{stream}/finish", {})


def _placed(proxy: NodeProcess, run: int) -> dict[str, Any]:
    told = proxy.get(f"/queries/q{run}/placed?format=json")
    found: dict[str, Any] = told["inputs"][0]["join"]
    return found


def _part(node: NodeProcess, id_: str) -> dict[str, Any]:
    found: dict[str, Any] | None = node.get(f"/network/joins?id={quote(id_, safe='')}")
    return {"fed": {}, "nodes": []} if found is None else found


def _fed(node: NodeProcess, id_: str) -> bool:
    fed = _part(node, id_)["fed"].values()
    return bool(fed) and min(fed) > 1 << 60


def _ways(node: NodeProcess, id_: str) -> dict[int, int]:
    """Rows that went from here to each node of the plan."""
    return {way["to"]: way["rows"] for n in _part(node, id_)["nodes"] for way in n["ways"]}


def _sent(node: NodeProcess, id_: str) -> int:
    return sum(_ways(node, id_).values())


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    rows: list[dict[str, Any]] = []
    cases = [(figure, method) for figure in FIGURES for method in ROUTING]
    with (
        tempfile.TemporaryDirectory(prefix="thalweg-bench-") as temporary,
        network(Path(temporary), 4, 20) as nodes,
    ):
        for number, (figure, method) in enumerate(cases):
            progress(f"{figure.name}, {method}", number / len(cases))
            rows.append(measure(p, nodes, figure, method, number))
    goals = []
    took = {(row["figure"], row["method"]): row["s"] for row in rows}
    for figure in FIGURES:
        better = min(took[figure.name, method] for method in STATIC)
        is_static = len(figure.selectivities) == 1 and figure.loaded is None
        limit, name = 1.05 if is_static else 1.0, f"SwAP over the better static plan, {figure.name}"
        goals.append(Goal(name, took[figure.name, SWAP] / better, limit, at_least=False))
    off = max(abs(row["results"] - row["simulated results"]) for row in rows)
    goals.append(Goal("results more or fewer than simulated", off, 0, at_least=False))
    return Report("swap-live", "Joins across live nodes", asdict(p), rows, goals)
