"""A system to experiment on: the network of COSMOS 3.4, its coordinators, and drawn queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thalweg.experiments.cosmos.judging import Verdict, judge
from thalweg.experiments.cosmos.setting import Setting, setting
from thalweg.placement.arrays import Floats, Ints, floats, ints
from thalweg.placement.cosmos.hierarchy import cluster
from thalweg.placement.cosmos.model import Substreams, Vertices, stacked
from thalweg.placement.cosmos.system import Settings, System
from thalweg.placement.cosmos.workload import Drawn, Workload, draw


@dataclass(frozen=True)
class Case:
    made: Setting
    system: System
    drawn: Drawn
    workload: Workload
    settings: Settings

    def judge(self, mapping: Ints) -> Verdict:
        return judge(self.made, self.system, mapping)

    @property
    def proxy(self) -> Ints:
        """Of all queries, those that came later included: each has one."""
        return ints(self.system.queries.results.indices)

    def with_queries(self, queries: Vertices) -> Case:
        system = self.system
        return replace(self, system=System(system.network, system.root, system.substreams, queries))

    def more(self, count: int, first: int, seed: int) -> tuple[Case, Drawn]:
        """The same with `count` queries more, and these by themselves."""
        later = draw(replace(self.workload, queries=count), seed, first=first)
        return self.with_queries(stacked([self.system.queries, later.queries])), later

    def with_rates(self, rate_bps: Floats) -> Case:
        """Other rates; the load of queries follows them, and so do their results."""
        system = self.system
        before = system.queries.interests @ system.substreams.rate_bps
        after = system.queries.interests @ rate_bps
        results = system.queries.results.copy()
        results.data = results.data * np.repeat(after / before, np.diff(results.indptr))
        queries = replace(system.queries, weight=floats(after), results=results)
        substreams = Substreams(rate_bps, system.substreams.source)
        return replace(self, system=System(system.network, system.root, substreams, queries))


@dataclass(frozen=True)
class Scale:
    """The network of COSMOS 3.4 and its coordinators: parameters that all experiments have."""

    nodes: int = 4_096
    sources: int = 100
    providers: int = 256
    most_vertices: int = 300
    seed: int = 1

    def setting(self) -> Setting:
        sizes = {"providers": self.providers, "sources": self.sources, "nodes": self.nodes}
        return setting(self.seed, **sizes)

    def case(self, made: Setting, queries: int, k: int, **more: Any) -> Case:
        """So many queries on that network, under a tree of clusters of k to 3k − 1."""
        workload = Workload(queries=queries, providers=self.providers, sources=self.sources, **more)
        drawn = draw(workload, self.seed)
        root = cluster(made.network.latency_ms, k)
        system = System(made.network, root, drawn.substreams, drawn.queries)
        settings = Settings(most_vertices=self.most_vertices, seed=self.seed)
        return Case(made, system, drawn, workload, settings)
