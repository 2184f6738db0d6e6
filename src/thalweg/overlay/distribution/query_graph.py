"""The query graph of one coordinator (COSMOS 3.3.4): what runs below it, and how it is seen.

A coordinator has a record for each query below it. Where these are more than the source's v_max,
they are coarsened before anything is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.random import Generator
from scipy.sparse import csr_array

from thalweg.overlay.distribution.entries import Running
from thalweg.overlay.distribution.picture import Picture
from thalweg.placement.arrays import Floats, Ints, floats, ints
from thalweg.placement.cosmos.coarsening import coarsen
from thalweg.placement.cosmos.model import Substreams, Vertices
from thalweg.placement.cosmos.view import View

MOST_VERTICES = 300  # v_max
_AT_ONCE = 1000  # vertices, whose edges are spelt out to coarsen them


@dataclass(frozen=True, slots=True, eq=False)
class QueryGraph:
    seen: View
    vertices: Vertices  # a query each
    rates: Substreams

    def cut(self, mapping: Ints) -> float:
        return self.seen.cut(self.vertices, self.rates, mapping)

    def coarsened(self, rng: Generator, place: Ints | None = None) -> npt.NDArray[np.int64]:
        """The coarse vertex of each query (Algorithm 3.1); given places, only of one place each."""
        count = len(self.vertices)
        if count <= MOST_VERTICES:
            return np.arange(count)
        at = np.zeros(count, np.int32) if place is None else place
        into, made = np.zeros(count, np.int64), 0
        for child in np.unique(at).tolist():
            there = np.flatnonzero(at == child)
            for part in np.array_split(there, -(-len(there) // _AT_ONCE)):
                most = max(1, MOST_VERTICES * len(part) // count)
                chosen = self.vertices.chosen(part)
                into[part] = made + coarsen(chosen, self.rates, most, rng).into
                made = int(into[part].max()) + 1
        return into


def query_graph(picture: Picture, runs: Sequence[Running], limits: Floats) -> QueryGraph:
    substreams = sorted({s for running in runs for s in running.query.substreams})
    # Where substreams enter is in the view already; what is left of them are their rates.
    rates = Substreams(picture.rate_bps(substreams), ints([0] * len(substreams)))
    return QueryGraph(picture.view(substreams, limits), _vertices(runs, substreams, picture), rates)


def _vertices(runs: Sequence[Running], substreams: list[int], picture: Picture) -> Vertices:
    column = {s: i for i, s in enumerate(substreams)}
    rows = [i for i, r in enumerate(runs) for _ in r.query.substreams]
    columns = [column[s] for r in runs for s in r.query.substreams]
    shape = (len(runs), len(substreams))
    ones = np.ones(len(rows), np.float32)
    return Vertices(
        csr_array((ones, (rows, columns)), shape=shape),
        csr_array(np.array([picture.result(r.query) for r in runs])),
        floats(r.weight for r in runs),
        floats(r.query.state_bytes for r in runs),
    )
