"""What a task says about the weight of its hashes: how many new tuples each bucket of them has, and
which key has most."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from thalweg.engine.shared.expressions.translate import to_polars
from thalweg.engine.shared.state.segments import Mapped
from thalweg.engine.shared.tick.messages import HotKey
from thalweg.engine.shared.tick.task import Task
from thalweg.plan.buckets import MANY, is_hot
from thalweg.plan.expr import Expr


def weigh(task: Task, stream: str, keys: tuple[Expr, ...], own: Mapped) -> None:
    """Count tuples, sorted by their hash, that this task owns by one key of the stream."""
    hashes, buckets = own.hashes, task.spec.buckets
    if task.is_alone or len(hashes) < MANY:
        return
    ends = np.searchsorted(hashes, np.array(buckets, dtype=np.uint64))
    counted = task.report.rows_by_bucket
    for bucket, (first, last) in zip(buckets, pairwise((*ends.tolist(), len(hashes))), strict=True):
        if last > first:
            counted[bucket] = counted.get(bucket, 0) + last - first
    if not keys:
        return  # a plain log spreads evenly
    firsts = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))
    lengths = np.diff(firsts, append=len(hashes))
    longest = int(np.argmax(lengths))
    if is_hot(int(lengths[longest]), len(hashes), MANY):
        row = own.frame.slice(int(firsts[longest]), 1)
        key = ", ".join(str(v) for v in row.select(to_polars(k) for k in keys).row(0))
        task.report.hottest.append(HotKey(stream, key, int(lengths[longest])))
