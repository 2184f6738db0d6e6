"""Drawn workloads that flow through an engine, while queries come and go and it is restarted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from tests.conformance.generators import Workload
from tests.conformance.runner import compare
from tests.engine.shared.adapter import Collect, push
from tests.engine.shared.sharing_workloads import SharedWorkload

from thalweg.engine import reference
from thalweg.engine.shared.engine import SharedEngine
from thalweg.engine.shared.tolerance_classes import starts_of
from thalweg.plan.catalog import QueryDef
from thalweg.plan.nodes import Tolerant

ALWAYS, NEVER = 0, 1 << 40  # when the changes of relations are reduced to what is left of them


def class_starts(engine: SharedEngine, query: QueryDef) -> dict[Tolerant, reference.ClassStart]:
    """What was decided for a query's tolerances, as the reference reads it."""
    found = starts_of(engine.store, engine.roster.queries[query.name], query.plan)
    return {node: reference.ClassStart(*start) for node, start in found.items()}


class Flowing:
    """An engine over a workload's streams, a few tuples of each at a time."""

    def __init__(self, folder: Path, workload: Workload | SharedWorkload, **how: Any) -> None:
        self.workload, self.script = workload, workload.script()
        self.outlet, self.folder, self.how = Collect(), folder, how
        self.streams = {s.name: s for s in self.script.catalog.streams()}
        self.standing: list[QueryDef] = []
        self.waiting = {name: iter(arrivals) for name, arrivals in workload.inputs.items()}
        self.open()
        for stream in self.streams.values():
            partitions = {a.partition for a in workload.inputs[stream.name]}
            self.engine.landing.declare(stream, sorted(partitions))

    def open(self) -> None:
        self.engine = SharedEngine(self.folder, outlet=self.outlet, durable=False, **self.how)
        for stream in self.streams.values():
            self.engine.add_stream(stream)
        self.engine.add_queries(self.standing)

    def submit(self, queries: Sequence[QueryDef]) -> None:
        self.engine.add_queries(queries)
        self.standing += queries

    def drop(self, query: QueryDef) -> None:
        self.engine.drop_query(query.name)
        self.standing.remove(query)
        self.outlet.results.pop(query.name, None)

    def flow(self, tuples: int) -> None:
        """So many tuples of each stream, and a tick."""
        for name in list(self.waiting):
            chunk = list(islice(self.waiting[name], tuples))
            push(self.engine, self.streams[name], chunk)
            if not chunk:
                self.engine.finish(name)
                del self.waiting[name]
        self.engine.run_to_end()

    def check(self) -> None:
        for query in self.standing:
            begun = self.engine.roster.queries[query.name]
            expected = reference.evaluate(
                query.plan,
                self.workload.inputs,
                start=begun.started,
                horizons=dict(begun.horizons),
                classes=class_starts(self.engine, query),
            )
            report = compare(query, expected, self.outlet.results.get(query.name, []))
            assert not report, f"{begun}\n{report}"
