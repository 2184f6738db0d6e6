"""Large ticks divided by cost: tasks own ranges of hashes, cut anew from tick to tick.

Tasks count the new tuples of each bucket, and say what CPU they used; a task's seconds are
its buckets' in proportion to their tuples. What comes of that is pure (`plan.buckets`). Rows do
not depend on who owns what, so nothing of this is written down: after a restart it begins evenly.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from thalweg.engine.shared.tick.messages import HotKey, TaskReport
from thalweg.plan.buckets import (
    Bucket,
    Starts,
    even,
    first_buckets,
    observed,
    redivided,
    refined,
)

log = logging.getLogger(__name__)


class Division:
    """Who owns which hashes, for one number of tasks at a time."""

    def __init__(self) -> None:
        self._buckets: tuple[Bucket, ...] = first_buckets()
        self._starts: Starts = ()
        self.hot: dict[str, HotKey] = {}  # by stream, as of the last tick that was divided

    def starts(self, tasks: int) -> Starts:
        if len(self._starts) != tasks:
            self._starts = even(tasks)
        return self._starts

    @property
    def buckets(self) -> tuple[int, ...]:
        """Where buckets begin."""
        return tuple(g.low for g in self._buckets)

    def learn(self, reports: Iterable[TaskReport], rows: dict[str, int]) -> None:
        """From a tick in several tasks, with so many new tuples by stream."""
        costs: dict[int, float] = {}
        seen = list(reports)
        for report in seen:
            counted = sum(report.rows_by_bucket.values())
            for bucket, of in report.rows_by_bucket.items():
                costs[bucket] = costs.get(bucket, 0.0) + report.cpu_s * of / counted
        if not costs:
            return
        tasks = len(self._starts)
        self._buckets = refined(observed(self._buckets, costs), tasks)
        self._starts = redivided(self._buckets, self._starts)
        self._tell_hot_keys([k for r in seen for k in r.hottest], rows, tasks)

    def _tell_hot_keys(self, keys: Iterable[HotKey], rows: dict[str, int], tasks: int) -> None:
        """No division helps against a key that alone has more than a task's share."""
        hot: dict[str, HotKey] = {}
        for key in keys:
            known = hot.get(key.stream)
            is_hot = key.rows * tasks > rows.get(key.stream, 0)
            if is_hot and (known is None or known.rows < key.rows):
                hot[key.stream] = key
        for stream, key in hot.items():
            before = self.hot.get(stream)
            if before is None or before.key != key.key:
                log.warning(
                    "%s: %s of %s new tuples have the key %s, more than one of %s tasks' share: "
                    "they stay in one task",
                    stream, key.rows, rows[stream], key.key, tasks,
                )  # fmt: skip
        self.hot = hot
