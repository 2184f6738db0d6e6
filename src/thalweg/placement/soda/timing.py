"""Whether bounded queries get their results in time under a layout."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from thalweg.placement.arrays import NONE
from thalweg.placement.soda.layout import Layout


def in_time(layout: Layout, queries: Sequence[int]) -> bool:
    asked, latency = layout.problem.queries, layout.problem.hosts.latency_ms
    if latency is None:
        return True
    known: dict[int, float] = {}
    maker = {int(layout.problem.operators.output[o]): o for o in layout.host_of}

    def made_after_ms(stream: int) -> float:
        """When the stream is ready where it is made: its last input decides."""
        if stream not in known:
            inputs = layout.problem.operators.inputs[maker[stream]] if stream in maker else ()
            here = layout.origin(stream)
            known[stream] = max(
                (
                    made_after_ms(int(s)) + float(latency[layout.origin(int(s)), here])
                    for s in inputs
                ),
                default=0.0,
            )
        return known[stream]

    for query in queries:
        bound, wanted = float(asked.latency_bound_ms[query]), int(asked.wanted[query])
        if bound < inf:
            proxy = int(asked.proxy[query])
            way = 0.0 if proxy == NONE else float(latency[layout.origin(wanted), proxy])
            if made_after_ms(wanted) + way > bound:
                return False
    return True
