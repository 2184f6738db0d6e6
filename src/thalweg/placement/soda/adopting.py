"""Going on from a deployment that runs, where it has the shape of a layout."""

from __future__ import annotations

import numpy as np

from thalweg.placement.arrays import NONE
from thalweg.placement.deployment import Deployment
from thalweg.placement.soda.layout import Layout


def adopt(layout: Layout, running: Deployment) -> tuple[dict[int, int], list[int]]:
    """Which operator makes which stream, and who is served; refused if SODA could not have made it.

    A stream that two operators make, or that is relayed, is nothing that glued templates can say.
    """
    problem = layout.problem
    maker: dict[int, int] = {}
    runs = sorted(running.runs.tolist(), key=lambda run: int(problem.level[run[1]]))
    for host, operator in runs:
        output = int(problem.operators.output[operator])
        if output in maker:
            name = problem.streams.names[output]
            raise ValueError(f"$.running: {name} is made twice, which soda can't go on from")
        maker[output] = operator
        layout.put(operator, host)
    served = np.flatnonzero(running.serves != NONE).tolist()
    for query in served:
        layout.serve(int(problem.queries.wanted[query]), int(problem.queries.proxy[query]))
    if sorted(layout.sends()) != sorted(map(tuple, running.sends.tolist())):
        raise ValueError(
            "$.running: streams go other ways than from their makers to their users,"
            " which soda can't go on from"
        )
    return maker, served
