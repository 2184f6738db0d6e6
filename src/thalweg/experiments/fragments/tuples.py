"""What happens to the tuples of a slice: filters and joins at nodes, hops over the network.

Whether a tuple passes an operator is drawn when it enters, and does not depend on when things
happen; so all jobs of a slice are drawn first, and `stations` finds out when they happen. A tuple
that comes to a node is one job there: all fragments at that node that read it, one after the other,
each as far as it goes without leaving the node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.experiments.fragments.stations import Jobs
from thalweg.experiments.fragments.workload import TUPLE_BYTES, Workload
from thalweg.placement.arrays import Flags, Floats, Ints

HOP_S = 1e-4  # besides the time on the wire


@dataclass(slots=True)
class Walks:
    """Tuples on their paths: `position` is the next operator."""

    path: Ints
    position: Ints
    entered: Floats  # t_in
    spent: Floats  # p, so far

    def __len__(self) -> int:
        return len(self.path)

    def only(self, which: Flags | Ints) -> Walks:
        return Walks(self.path[which], self.position[which], self.entered[which], self.spent[which])

    @classmethod
    def none(cls) -> Walks:
        rows, times = np.empty(0, np.int64), np.empty(0)
        return cls(rows, rows, times, times)

    def and_then(self, other: Walks) -> Walks:
        return Walks(
            np.concatenate([self.path, other.path]),
            np.concatenate([self.position, other.position]),
            np.concatenate([self.entered, other.entered]),
            np.concatenate([self.spent, other.spent]),
        )


@dataclass(slots=True)
class Results:
    """What reaches the users: `row` of the job that makes it, and how long after its start."""

    row: Ints
    offset: Floats
    path: Ints
    entered: Floats
    spent: Floats

    def only(self, which: Flags) -> Results:
        return Results(
            self.row[which],
            self.offset[which],
            self.path[which],
            self.entered[which],
            self.spent[which],
        )

    @classmethod
    def none(cls) -> Results:
        rows, times = np.empty(0, np.int64), np.empty(0)
        return cls(rows, times, rows, times, times)

    def and_then(self, other: Results) -> Results:
        pairs = ((getattr(self, c), getattr(other, c)) for c in self.__slots__)
        return Results(*(np.concatenate(p) for p in pairs))


class Traffic:
    """Draws the jobs of a slice. `place` of a unit that is on its way between nodes is −1."""

    def __init__(self, work: Workload, nodes: int, network_bps: float, seed: int) -> None:
        self.work, self.nodes = work, nodes
        self.wire_s = TUPLE_BYTES * 8 / network_bps
        self.rng = np.random.default_rng(seed)
        self.offered = np.zeros(work.units)  # seconds of work for each unit, of this slice
        self.sent_bytes = 0.0
        order = np.argsort(work.stream, kind="stable")
        starts = np.searchsorted(work.stream[order], np.arange(len(work.delegate) + 1))
        self._by_stream = (order, starts)
        self._jobs, self._results, self._held = Jobs.none(), Results.none(), Walks.none()

    def slice(
        self, place: Ints, begin: float, length: float, rates: Floats, released: Walks
    ) -> tuple[Jobs, Results, Walks]:
        """Jobs, results, and tuples held back for units that are on their way."""
        self._jobs, self._results, self._held = Jobs.none(), Results.none(), Walks.none()
        self.offered.fill(0.0)
        self.sent_bytes = 0.0
        entered, stream = self._arrivals(begin, length, rates)
        fresh = self._fresh(entered, stream)
        self._enter(fresh, place, fresh.entered, self.work.delegate[self.work.stream[fresh.path]])
        if len(released):
            # They come from where their tuples waited: over the network, at once.
            self._enter(released, place, np.full(len(released), begin), None)
        return self._jobs, self._results, self._held

    def _arrivals(self, begin: float, length: float, rates: Floats) -> tuple[Floats, Ints]:
        counts = self.rng.poisson(rates * length)
        stream = np.repeat(np.arange(len(rates)), counts)
        return begin + length * self.rng.random(len(stream)), stream

    def _fresh(self, entered: Floats, stream: Ints) -> Walks:
        order, starts = self._by_stream
        counts = starts[stream + 1] - starts[stream]
        begin = np.repeat(starts[stream] - np.cumsum(counts) + counts, counts)
        path = order[begin + np.arange(counts.sum())]
        times = np.repeat(entered, counts)
        return Walks(path, np.zeros(len(path), np.int64), times, np.zeros(len(path)))

    def _node(self, walks: Walks, place: Ints) -> Ints:
        work = self.work
        found: Ints = place[work.unit[work.paths[walks.path, walks.position]]]
        return found

    def _enter(self, walks: Walks, place: Ints, arrival: Floats, source: Ints | None) -> None:
        """Tuples come in: a job for each tuple and node, over the network if it is not there."""
        node = self._node(walks, place)
        self._hold(walks.only(node < 0))
        here = np.flatnonzero(node >= 0)
        stream = self.work.stream[walks.path[here]]
        order = here[np.lexsort((node[here], stream, arrival[here]))]
        if source is None:  # held tuples: each on its own
            change = np.ones(len(order), bool)
        else:
            keys = (arrival[order], self.work.stream[walks.path[order]], node[order])
            change = np.zeros(len(order), bool)
            for key in keys:
                change |= np.diff(key, prepend=-1.0) != 0
        job = np.cumsum(change) - 1
        first = order[change]
        travels = np.ones(len(first), bool)
        if source is not None:
            travels = node[first] != source[first]
        jobs = len(first)
        wires = int(travels.sum())
        base = len(self._jobs)
        row = base + wires + np.arange(jobs)  # the wires first: parents stand above
        wire_of = np.where(travels, np.cumsum(travels) - 1, -1)
        self._wire(np.full(wires, -1), np.zeros(wires), arrival[first][travels])
        self._walk(
            walks.only(order),
            place,
            node[order],
            job,
            Jobs(
                node[first],
                np.zeros(jobs),
                np.where(travels, wire_of + base, -1),
                np.full(jobs, self.wire_s + HOP_S),
                arrival[first],
            ),
            row,
        )

    def _wire(self, parent: Ints, offset: Floats, arrival: Floats) -> None:
        """Tuples on the network, which is one station that all nodes share."""
        count = len(parent)
        self.sent_bytes += count * TUPLE_BYTES
        on_wire = Jobs(
            np.full(count, self.nodes), np.full(count, self.wire_s), parent, offset, arrival
        )
        self._append(on_wire)

    def _append(self, jobs: Jobs) -> None:
        """Parents of these are rows of the whole table already."""
        parent = jobs.parent
        self._jobs = self._jobs.and_then(jobs)
        self._jobs.parent[len(self._jobs) - len(jobs) :] = parent

    def _walk(
        self, walks: Walks, place: Ints, node: Ints, job: Ints, jobs: Jobs, row: Ints
    ) -> None:
        """Each tuple as far as it goes at this node; those that leave are walked on in turn."""
        service, fate = self._operate(walks, place, node)
        jobs.service = np.bincount(job, service, len(jobs))
        self._append(jobs)
        end = np.cumsum(service)
        base = np.zeros(len(jobs))
        if len(jobs):
            firsts = np.searchsorted(job, np.arange(len(jobs)))
            base = (end - service)[firsts]
        offset = end - base[job]
        done = fate == DONE
        self._results = self._results.and_then(
            Results(
                row[job[done]],
                offset[done],
                walks.path[done],
                walks.entered[done],
                walks.spent[done],
            )
        )
        self._hold(walks.only(fate == HELD))
        gone = np.flatnonzero(fate == GONE)
        if not len(gone):
            return
        wire_base = len(self._jobs)
        self._wire(row[job[gone]], offset[gone], np.full(len(gone), np.nan))
        onward = walks.only(gone)
        to = self._node(onward, place)
        count = len(gone)
        hops = Jobs(
            to,
            np.zeros(count),
            wire_base + np.arange(count),
            np.full(count, self.wire_s + HOP_S),
            np.full(count, np.nan),
        )
        self._walk(onward, place, to, np.arange(count), hops, wire_base + count + np.arange(count))

    def _operate(self, walks: Walks, place: Ints, node: Ints) -> tuple[Floats, Ints]:
        work, rng = self.work, self.rng
        service, fate = np.zeros(len(walks)), np.zeros(len(walks), np.int64)
        active = np.arange(len(walks))
        while len(active):
            operator = work.paths[walks.path[active], walks.position[active]]
            took = work.time_s[operator] * rng.standard_exponential(len(active))
            service[active] += took
            walks.spent[active] += took
            self.offered += np.bincount(work.unit[operator], took, work.units)
            passed = active[rng.random(len(active)) < work.selectivity[operator]]
            walks.position[passed] += 1
            ends = walks.position[passed] == work.length[walks.path[passed]]
            fate[passed[ends]] = DONE
            active = passed[~ends]
            to = self._node(walks.only(active), place)
            fate[active[to < 0]] = HELD
            stays = to == node[active]
            fate[active[(to >= 0) & ~stays]] = GONE
            active = active[stays]
        return service, fate

    def _hold(self, walks: Walks) -> None:
        if len(walks):
            self._held = self._held.and_then(walks)


LOST, DONE, GONE, HELD = range(4)
