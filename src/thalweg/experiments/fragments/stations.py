"""Queues that serve in order of arrival, slice by slice, on arrays: exact, and fast.

A job waits at a station, is served, and then causes others: a child arrives `offset` after its
parent's *start*. Within a slice of time the arrival of a child depends on how long its parent
waited, which depends on other arrivals. So starts are computed for guessed arrivals (Lindley's
recursion, by running sums and maxima over all stations at once), arrivals from starts, and so on
until nothing changes: each pass settles what no unsettled job comes before, so the fixed point is
what an event simulation gives (`tests/experiments/fragments/test_stations.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.placement.arrays import Floats, Ints

APART = 1e4  # seconds between the stations on one common time line: more than any run
EXACT_S = 1e-7  # a filter takes two hundred times as long
MOST_PASSES = 400


@dataclass(slots=True)
class Jobs:
    """Columns; `parent` is a row of the same table, above the row itself, or −1."""

    station: Ints
    service: Floats
    parent: Ints
    offset: Floats
    arrival: Floats  # of those without a parent

    def __len__(self) -> int:
        return len(self.station)

    @classmethod
    def none(cls) -> Jobs:
        empty, no_rows = np.empty(0), np.empty(0, np.int64)
        return cls(no_rows, empty, no_rows, empty, empty)

    def and_then(self, other: Jobs) -> Jobs:
        moved = np.where(other.parent >= 0, other.parent + len(self), -1)
        return Jobs(
            np.concatenate([self.station, other.station]),
            np.concatenate([self.service, other.service]),
            np.concatenate([self.parent, moved]),
            np.concatenate([self.offset, other.offset]),
            np.concatenate([self.arrival, other.arrival]),
        )


class Stations:
    """`waiting` has the jobs that have not arrived yet; rows of it are named by `advance`."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.free_at = np.zeros(count)  # when each has served all that has arrived
        self.waiting = Jobs.none()
        self.now = 0.0
        self.passes = 0  # of the last slice

    def advance(self, until: float) -> tuple[Floats, Ints, Floats]:
        """Starts of all rows of `waiting` (NaN: not arrived by then), where each row is now (−1:
        done), and how long each station was busy."""
        jobs = self.waiting
        starts, arrivals = self._settle(jobs, until)
        done = ~np.isnan(starts)
        backlog = np.maximum(self.free_at - self.now, 0.0)
        work = np.bincount(jobs.station[done], jobs.service[done], self.count)
        ends = starts[done] + jobs.service[done]
        np.maximum.at(self.free_at, jobs.station[done], ends)
        left = np.maximum(self.free_at - until, 0.0)
        busy = backlog + work - left
        rows = np.where(done, -1, np.cumsum(~done) - 1)
        self._keep(jobs, ~done, rows, arrivals)
        self.now = until
        return starts, rows, busy

    def _keep(self, jobs: Jobs, left: Ints, rows: Ints, arrivals: Floats) -> None:
        parent = jobs.parent[left]
        moved = np.where(parent >= 0, rows[parent], -1)  # −1: the parent was served
        self.waiting = Jobs(
            jobs.station[left], jobs.service[left], moved, jobs.offset[left], arrivals[left]
        )

    def _settle(self, jobs: Jobs, until: float) -> tuple[Floats, Floats]:
        active = self._reachable(jobs, until)
        all_starts, all_arrivals = np.full(len(jobs), np.nan), jobs.arrival.copy()
        if not len(active):
            return all_starts, all_arrivals
        row_of = np.full(len(jobs), -1)
        row_of[active] = np.arange(len(active))
        station, service = jobs.station[active], jobs.service[active]
        child = np.flatnonzero(jobs.parent[active] >= 0)
        parent = row_of[jobs.parent[active][child]]
        offset = jobs.offset[active][child]
        arrival = all_arrivals[active]
        starts = np.full(len(active), np.inf)
        for self.passes in range(1, MOST_PASSES + 1):
            arrived = np.flatnonzero(arrival < until)
            starts.fill(np.inf)
            starts[arrived] = self._serve(station[arrived], service[arrived], arrival[arrived])
            before = arrival[child]
            arrival[child] = starts[parent] + offset
            moved = np.abs(np.minimum(arrival[child], until) - np.minimum(before, until))
            if not len(moved) or moved.max() <= EXACT_S:
                break
        else:
            raise RuntimeError(f"a slice did not settle in {MOST_PASSES} passes")
        all_arrivals[active] = arrival
        all_starts[active] = np.where(arrival < until, starts, np.nan)
        # Whoever's parent started knows by now when it arrives, in this slice or later.
        known = np.flatnonzero(jobs.parent >= 0)
        start = all_starts[jobs.parent[known]]
        known, start = known[~np.isnan(start)], start[~np.isnan(start)]
        all_arrivals[known] = start + jobs.offset[known]
        return all_starts, all_arrivals

    def _reachable(self, jobs: Jobs, until: float) -> Ints:
        """Rows that may arrive in the slice: unhindered they would. Guesses their arrivals."""
        waiting = np.flatnonzero(jobs.parent >= 0)
        guess = jobs.arrival
        guess[waiting] = np.inf
        left = waiting
        while len(left):
            guess[left] = guess[jobs.parent[left]] + jobs.offset[left]
            left = left[np.isinf(guess[left])]
        found: Ints = np.flatnonzero(guess < until)
        return found

    def _serve(self, station: Ints, service: Floats, arrival: Floats) -> Floats:
        """In order of arrival at each station: start = max(arrival, end of the one before)."""
        order = np.argsort(station * APART + arrival, kind="stable")
        at, needs = station[order], service[order]
        before = np.cumsum(needs) - needs
        first = np.flatnonzero(np.diff(at, prepend=-1))
        base = np.repeat(before[first], np.diff(first, append=len(at)))
        before -= base
        could = arrival[order] - before
        could[first] = np.maximum(could[first], self.free_at[at[first]])
        starts = np.empty(len(order))
        starts[order] = np.maximum.accumulate(could + at * APART) - at * APART + before
        return starts
