"""A week in an hour: a live network with days and nights, adaptive beside static.

Streams are at home at three nodes, whose days begin at different hours; users submit at a fourth,
the desk. Queries come and go. A node without streams is there from the beginning and leaves on the
sixth day, another one comes on the third. *static*: queries stay where the strategy has put them.
*adaptive*: the same, and nodes balance as partners. Both get the same rows and the same queries at
the same time of the week. All nodes are processes of this machine, and share its processors: what
is compared is who waits for whom, not what more machines would gain.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import httpx

from bench.nodes import LONGEST_S, NodeProcess, started
from bench.week_schedule import DAYS, JOINS, LEAVES, TICKS_A_DAY, Standing, Week
from thalweg.cli.network.running import Running, Wanted, start, stop
from thalweg.engine.site import IN_PROCESS
from thalweg.experiments.report import Goal, Progress, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STATIC, ADAPTIVE = "static", "adaptive"
DESK, LEAVER, NEWCOMER = "desk", "w1", "w2"


@dataclass(frozen=True)
class Parameters:
    day_s: float = 3600 / DAYS  # so that a week takes an hour
    homes: int = 3
    rows_per_s: float = 400.0  # of each stream at noon, of this machine's seconds
    queries_per_day: float = 8.0
    keys: int = 200
    strategy: str = "fragments"
    cores: float = 1.0  # that placed queries may take of each node: more are refused
    round_s: float = 5.0
    samples_a_day: int = 24
    tick_interval_ms: int = 50
    seed: int = 7

    @classmethod
    def quick(cls) -> Parameters:
        return cls(day_s=20.0, round_s=1.0, samples_a_day=8, queries_per_day=5.0, rows_per_s=150.0)


def run(p: Parameters, progress: Progress) -> Report:
    samples: list[dict[str, Any]] = []
    rows = []
    for place, way in enumerate((STATIC, ADAPTIVE)):
        with tempfile.TemporaryDirectory() as folder:
            lived = Lived(p, Path(folder), way, partial(_progress, progress, way, place))
            lived.live()
        samples += lived.samples
        rows.append(lived.summary())
    static, adaptive = rows
    ratio = adaptive["PR_max, median"] / max(static["PR_max, median"], 1e-9)
    return Report(
        "week",
        "A week: partners beside a placement that stays",
        asdict(p),
        rows,
        [Goal("PR_max of the adaptive week, beside static", ratio, 1.0, at_least=False)],
        notes=[
            f"On day {JOINS + 1:.0f} {NEWCOMER} joins, on day {LEAVES + 1:.0f} {LEAVER} leaves.",
            *(f"{m['at']} > {m['to']}, {m['asked_by']}: {m['why']}" for m in lived.moves[:5]),
        ],
        details={"samples": samples},
        figures={
            name: partial(_over_time, samples=samples, value=value, label=label)
            for name, value, label in (
                ("admitted", "queries", "queries that stand"),
                ("ratio", "PR_max", "PR_max"),
                ("traffic", "Mbit/s", "Mbit/s between nodes"),
                ("moves", "moves", "fragments moved so far"),
                ("loads", "busiest/mean", "the busiest node's load by the mean"),
            )
        },
    )


def _progress(progress: Progress, way: str, place: int, day: float) -> None:
    progress(f"{way}, day {day + 1:.1f}", (place + day / DAYS) / 2)


def _over_time(axes: Axes, *, samples: Sequence[Mapping[str, Any]], value: str, label: str) -> None:
    for way in (STATIC, ADAPTIVE):
        of = [s for s in samples if s["way"] == way and s[value] is not None]
        axes.plot([s["day"] for s in of], [s[value] for s in of], label=way)
    for day in (JOINS, LEAVES):
        axes.axvline(day, linestyle=":", color="grey")
    axes.set_xlabel("day")
    axes.set_ylabel(label)
    axes.legend()


@dataclass
class Lived:
    """One way through the week."""

    p: Parameters
    folder: Path
    way: str
    progress: Any
    samples: list[dict[str, Any]] = field(default_factory=list)
    refused: int = 0
    admitted: int = 0
    known: dict[str, dict[str, Any]] = field(default_factory=dict)  # moves
    newcomer: Running | None = None
    late_s: float = 0.0  # by which pushes were behind, at worst

    def live(self) -> None:
        p = self.p
        self.names = [f"n{i + 1}" for i in range(p.homes)]
        self.week = Week(
            tuple(f"S{i + 1}" for i in range(p.homes)),
            p.rows_per_s * p.day_s,
            p.queries_per_day,
            p.keys,
            p.seed,
        )
        wanted = [self._wanted(name) for name in (DESK, *self.names, LEAVER)]
        with started(self.folder, wanted, p.tick_interval_ms) as nodes:
            self.nodes = {n.name: n for n in nodes}
            try:
                for stream, home in zip(self.week.streams, self.names, strict=True):
                    columns = "(k BIGINT, v BIGINT) TIMESTAMP BY ts BIGINT"
                    self.nodes[home].cql(f"CREATE STREAM {stream} {columns}")
                self._await_streams()
                self._week()
                self.moves = self._moves()
            finally:
                if self.newcomer is not None:
                    stop([self.newcomer])

    def _wanted(self, name: str) -> Wanted:
        p = self.p
        adaptive = {"controller": "partners", "partners": f"round_s={p.round_s}"}
        return Wanted(
            name,
            master=IN_PROCESS,
            cpu=p.cores,
            **(adaptive if self.way == ADAPTIVE else {}),  # type: ignore[arg-type]
        )

    def _await_streams(self) -> None:
        desk, until = self.nodes[DESK], time.monotonic() + 60
        while {s["name"] for s in desk.get("/streams")} < set(self.week.streams):
            assert time.monotonic() < until, "streams are not known at the desk"
            time.sleep(0.1)

    # --- the week

    def _week(self) -> None:
        p = self.p
        self._began, self._over = time.monotonic(), threading.Event()
        homes = zip(self.week.streams, self.names, strict=True)
        beside = [threading.Thread(target=self._feed, args=one, daemon=True) for one in homes]
        events = {JOINS: self._join, LEAVES: self._leave}  # they take their time
        waiting, standing = self.week.queries(), list[Standing]()
        for thread in beside:
            thread.start()
        try:
            while (day := self._now()) < DAYS:
                self.progress(day)
                for at in [d for d in events if d <= day]:
                    beside.append(threading.Thread(target=events.pop(at), daemon=True))
                    beside[-1].start()
                for query in [q for q in standing if q.ends <= day]:
                    self.nodes[DESK].cql(f"DROP QUERY {query.name}")
                    standing.remove(query)
                while waiting and waiting[0].begins <= day:
                    query = waiting.pop(0)
                    if query.ends > self._now() and self._submitted(query):
                        standing.append(query)
                self._sample(self._now(), len(standing))
                self._wait_for((int(self._now() * p.samples_a_day) + 1) / p.samples_a_day)
        finally:
            self._over.set()
            for thread in beside:
                thread.join(LONGEST_S)

    def _now(self) -> float:
        return (time.monotonic() - self._began) / self.p.day_s

    def _wait_for(self, day: float) -> None:
        time.sleep(max(0.0, (day - self._now()) * self.p.day_s))

    def _feed(self, stream: str, home: str) -> None:
        """Rows of half a second at a time."""
        step = 0.5 / self.p.day_s
        node = NodeProcess(self.nodes[home].running, self.folder)
        day = 0.0
        while day < DAYS and not self._over.is_set():
            self._wait_for(day + step)
            self.late_s = max(self.late_s, (self._now() - day - step) * self.p.day_s)
            rows = self.week.rows(stream, day, day + step)
            if rows.height:
                node.push(stream, rows)
            node.heartbeat(stream, round((day + step) * TICKS_A_DAY))
            day += step
        node.close()

    def _submitted(self, query: Standing) -> bool:
        """Whether it was admitted."""
        headers = {"thalweg-strategy": self.p.strategy}
        url = f"{self.nodes[DESK].url}/queries"
        answer = httpx.post(
            url, json={"cql": query.text}, headers=headers, timeout=120, trust_env=False
        )
        if answer.is_success:
            self.admitted += 1
            return True
        if "does not admit" in answer.text:
            self.refused += 1
            return False
        raise RuntimeError(f"{query.text}: {answer.text[:500]}")

    def _join(self) -> None:
        first = self.nodes[DESK].running.address
        more = ["--tick-interval-ms", str(self.p.tick_interval_ms)]
        self.newcomer = start(self._wanted(NEWCOMER), self.folder, [first], more)

    def _leave(self) -> None:
        """What it computes goes to the desk, which reads it. If it can't yet, once more."""
        url, headers = f"{self.nodes[DESK].url}/network/leave", {"thalweg-at": LEAVER}
        while not self._over.is_set():
            answer = httpx.post(url, headers=headers, timeout=LONGEST_S, trust_env=False)
            if answer.is_success:
                return
            self._over.wait(1.0)

    # --- what is seen

    def _sample(self, day: float, standing: int) -> None:
        desk = self.nodes[DESK]
        ratios = [q["pr"] for q in desk.get("/queries") if q["pr"] is not None]
        delays = [q["delay_ms"] for q in desk.get("/queries") if q["delay_ms"] is not None]
        loads = [n for n in desk.get("/network/loads") if n["node"] != DESK]
        cores = [n["cores"] for n in loads]
        mean = fmean(cores) if cores else 0.0
        moves = [m for m in self._moves() if m["state"] == "done"]
        self.samples.append(
            {
                "way": self.way,
                "day": round(day, 3),
                "queries": standing,
                "refused": self.refused,
                "PR_max": max(ratios, default=None),
                "delay_ms": max(delays, default=None),
                "Mbit/s": sum(n["out_bps"] for n in loads) / 1e6,
                "moves": len(moves),
                "nodes": len(loads) + 1,
                "busiest/mean": max(cores) / mean if mean > 0 else None,
            }
        )

    def _moves(self) -> list[dict[str, Any]]:
        """Those of nodes that have left, too."""
        self.known |= {m["move"]: m for m in self.nodes[DESK].get("/network/moves")}
        return sorted(self.known.values(), key=lambda m: float(m["begun"]))

    def summary(self) -> dict[str, Any]:
        """Over the week; the first quarter of a day is left out."""
        of = [s for s in self.samples if s["day"] >= 0.25]

        def known(name: str) -> list[float]:
            return [s[name] for s in of if s[name] is not None] or [0.0]

        ratios = sorted(known("PR_max"))
        done = [m for m in self.moves if m["state"] == "done"]
        return {
            "way": self.way,
            "admitted": self.admitted,
            "refused": self.refused,
            "PR_max, median": median(ratios),
            "PR_max, 95 %": ratios[int(0.95 * (len(ratios) - 1))],
            "delay ms, median": median(known("delay_ms")),
            "Mbit/s": fmean(known("Mbit/s")),
            "busiest/mean": fmean(known("busiest/mean")),
            "moves": len(done),
            "stood still s": max((m["stood_still_s"] or 0.0 for m in done), default=0.0),
            "pushes late s": self.late_s,
        }
