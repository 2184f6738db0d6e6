"""Measured costs put together for more cores than there are: an estimate, not a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize

CORES = (10, 100, 1_000)
JOB_S, TASK_S = 0.1, 0.004  # Spark's own for a job, and of the driver for each task of it
_MILLION = 1e6


@dataclass(frozen=True)
class Paper:
    rows: list[dict[str, Any]]
    notes: list[str]


def bounds(rows: Sequence[dict[str, Any]]) -> str:
    """How many times one core's speed each part can reach, by what was measured on."""
    titles = {"land": "file ingest", "tick": "large ticks with one sink"}
    of = [r for r in rows if r["what"] in titles and "in tasks" in r["source"]]
    return ", ".join(
        f"{titles[r['what']]} {r['cpu s'] / max(r['driver s'], 1e-9):.1f} x one core "
        f"({r['executors']} executors)"
        for r in of
    )


def fit(tasks: Sequence[dict[str, Any]], source: str) -> tuple[float, float, float]:
    """Seconds of the longest task of P with N events: a + b N + c N / P, the last two by event."""
    of = [r for r in tasks if r["source"] == source]
    parts = np.array([[1.0, r["events"], r["events"] / r["tasks"]] for r in of])
    longest = np.array([r["longest task cpu s"] for r in of])
    found, *_ = optimize.nnls(parts / longest[:, None], np.ones(len(of)))
    return float(found[0]), float(found[1]), float(found[2])


def fitted(tasks: Sequence[dict[str, Any]]) -> str:
    found = (
        f"{s}: {a * 1000:.0f} ms + ({b * _MILLION:.3f} + {c * _MILLION:.3f} / P) us an event"
        for s in _sources(tasks)
        for a, b, c in [fit(tasks, s)]
    )
    return "; ".join(found)


def _sources(tasks: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(r["source"] for r in tasks))


def estimate(rows: Sequence[dict[str, Any]], tasks: Sequence[dict[str, Any]], events: int) -> Paper:
    """Ticks so large that Spark's own seconds matter little."""
    files = next(r for r in reversed(rows) if r["what"] == "land" and "in tasks" in r["source"])
    ticks = next(r for r in reversed(rows) if r["what"] == "tick" and "in tasks" in r["source"])
    landing = (files["cpu s"] - files["driver s"]) / files["events"]
    lists = files["driver s"] / files["events"]
    said = ticks["driver s"] / ticks["events"]
    size = 50 * events
    found = []
    for source in _sources(tasks):
        calls, whole, divided = fit(tasks, source)
        for cores in (1, *CORES):
            job = JOB_S + TASK_S * cores
            land = job + (landing / cores + lists) * size
            tick = job + calls + (whole + divided / cores + said) * size
            found.append(
                {
                    "what": "paper",
                    "source": source,
                    "cores": cores,
                    "events": size,
                    "land s": land,
                    "tick s": tick,
                    "events/s": size / max(land, tick),  # the next events land meanwhile
                }
            )
    return Paper(
        found,
        [
            "Amdahl's bound from the driver's measured share, if that never shrinks: "
            f"{bounds(rows)}. A bound, no forecast.",
            f"On paper: ticks of {size:,} events, {JOB_S} s a job and {TASK_S * 1000:.0f} ms a "
            "task, landing and ticks side by side, no waiting for disks or networks.",
        ],
    )
