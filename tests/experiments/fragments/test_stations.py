"""Queues on arrays against a plain event simulation, job for job."""

import heapq

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.experiments.fragments.stations import Jobs, Stations


def drawn(seed, roots, stations, load):
    """A forest: each job has up to two children, at any station, after a part of its service."""
    rng = np.random.default_rng(seed)
    station, service, parent, offset, arrival = [], [], [], [], []
    ready = [(-1, float(t)) for t in np.sort(rng.random(roots) * 2.0)]
    while ready:
        up, at = ready.pop(0)
        row = len(station)
        took = float(rng.exponential(load / roots))
        station.append(int(rng.integers(stations)))
        service.append(took)
        parent.append(up)
        offset.append(0.0 if up < 0 else at)
        arrival.append(at if up < 0 else np.nan)
        children = int(rng.integers(0, 3)) if row < 4 * roots else 0
        ready += [(row, took * float(rng.random()) + 1e-5) for _ in range(children)]
    columns = (np.array(c) for c in (station, service, parent, offset, arrival))
    return Jobs(*columns)


def plain(jobs):
    """One event after the other: a job arrives, waits for its station, and causes others."""
    free, starts = {}, np.empty(len(jobs))
    children = {}
    for row in range(len(jobs)):
        children.setdefault(int(jobs.parent[row]), []).append(row)
    heap = [(float(jobs.arrival[row]), row) for row in children[-1]]
    heapq.heapify(heap)
    while heap:
        at, row = heapq.heappop(heap)
        station = int(jobs.station[row])
        starts[row] = max(at, free.get(station, 0.0))
        free[station] = starts[row] + float(jobs.service[row])
        for child in children.get(row, ()):
            heapq.heappush(heap, (starts[row] + float(jobs.offset[child]), child))
    return starts


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 5), st.floats(0.1, 6.0))
def test_starts_are_those_of_an_event_simulation(seed, roots, stations, load):
    jobs = drawn(seed, roots, stations, load)
    expected = plain(jobs)
    model = Stations(stations)
    model.waiting = Jobs.none().and_then(jobs)
    found, rows, busy = np.full(len(jobs), np.nan), np.arange(len(jobs)), np.zeros(stations)
    until = 0.0
    while len(model.waiting):
        until += 0.1
        starts, now_at, worked = model.advance(until)
        left = rows >= 0
        here = rows[left]
        found[left] = np.where(np.isnan(starts[here]), np.nan, starts[here])
        rows[left] = now_at[here]
        busy += worked
        assert (worked <= 0.1 + 1e-6).all()
    assert found == pytest.approx(expected, abs=1e-5)
    _, _, worked = model.advance(until + 1e3)
    total = np.bincount(jobs.station, jobs.service, stations)
    assert busy + worked == pytest.approx(total, abs=1e-6)
