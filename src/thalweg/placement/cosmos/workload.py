"""The synthetic workload of COSMOS 3.4: groups of users, each with hot spots of its own.

20,000 substreams of 1 to 10 bytes/s at random sources. A query belongs to one of 20 groups and
wants 100 to 200 substreams, drawn by Zipf's law (θ = 0.8) over the group's own permutation of the
substreams. Its load is in proportion to its input. The source is silent on rates of results: they
are a tenth of the input here, as in its figure 3.4; and on state: it is what a window of 10 s to
60 s holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.random import Generator
from scipy.sparse import csr_array

from thalweg.placement.arrays import NONE, Ints, Ragged, floats, ints
from thalweg.placement.cosmos.model import Sparse, Substreams, Vertices
from thalweg.placement.problem import Hosts, Operators, Problem, Queries, Streams

BITS = 8
_AT_ONCE = 4_000  # queries whose draws are in memory at the same time


@dataclass(frozen=True, slots=True)
class Workload:
    queries: int = 60_000
    substreams: int = 20_000
    sources: int = 100
    providers: int = 256
    groups: int = 20
    wanted: tuple[int, int] = (100, 200)  # substreams of a query
    zipf: float = 0.8
    bytes_per_s: tuple[float, float] = (1.0, 10.0)  # of a substream
    result_share: float = 0.01  # of a query's input
    window_s: tuple[float, float] = (10.0, 60.0)

    def __post_init__(self) -> None:
        low, high = self.wanted
        if not 1 <= low <= high <= self.substreams:
            raise ValueError(f"a query can't want {low} to {high} of {self.substreams} substreams")
        if min(self.sources, self.providers, self.groups) < 1 or self.queries < 0:
            raise ValueError("sources, providers and groups are at least one, queries not negative")


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    substreams: Substreams
    queries: Vertices
    proxy: Ints
    group: Ints


def draw(workload: Workload, seed: int, *, first: int = 0) -> Drawn:
    """The same workload and seed give the same substreams and groups, and the same queries.

    `first` leaves out so many queries: more of the same kind, for queries that come later.
    """
    rng = np.random.default_rng([seed, 0])
    rate = rng.uniform(*workload.bytes_per_s, workload.substreams) * BITS
    source = rng.integers(workload.sources, size=workload.substreams)
    hot = np.stack([rng.permutation(workload.substreams) for _ in range(workload.groups)])
    later = np.random.default_rng([seed, 1, first])
    count = workload.queries
    group = later.integers(workload.groups, size=count)
    interests = _interests(workload, hot, group, later)
    proxy = ints(later.integers(workload.providers, size=count))
    read_bps = interests @ rate
    results = csr_array(
        (workload.result_share * read_bps, proxy, np.arange(count + 1)),
        shape=(count, workload.providers),
    )
    state = read_bps / BITS * later.uniform(*workload.window_s, count)
    queries = Vertices(interests, results, floats(read_bps), floats(state))
    return Drawn(Substreams(floats(rate), ints(source)), queries, proxy, ints(group))


def _interests(
    workload: Workload, hot: npt.NDArray[np.int64], group: npt.NDArray[np.int64], rng: Generator
) -> Sparse:
    low, high = workload.wanted
    wanted = rng.integers(low, high + 1, size=len(group))
    chance = np.arange(1, workload.substreams + 1) ** -workload.zipf
    upto = np.cumsum(chance / chance.sum())
    upto[-1] = 1.0
    parts = [
        _draw_ranks(wanted[rows], upto, rng)
        for rows in np.array_split(np.arange(len(group)), len(group) // _AT_ONCE + 1)
    ]
    ranks = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    columns = hot[np.repeat(group, wanted), ranks].astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(wanted)]).astype(np.int32)
    shape = (len(group), workload.substreams)
    found = csr_array((np.ones(len(columns), np.float32), columns, starts), shape=shape)
    found.sort_indices()
    return found


def _draw_ranks(
    wanted: npt.NDArray[np.int64], upto: npt.NDArray[np.float64], rng: Generator
) -> npt.NDArray[np.int64]:
    """For each query so many different ranks, as drawing without putting back would give them.

    Drawing with putting back and leaving out repetitions is the same, and can be done for all
    queries at once. Who lacks some draws again, after what it has.
    """
    ranks = len(upto)
    kept = np.zeros(0, np.int64)  # query · ranks + rank, in the order in which they were drawn
    lacking = wanted.copy()
    while lacking.any():
        draws = np.where(lacking > 0, 2 * lacking + 16, 0)
        of = np.repeat(np.arange(len(wanted)), draws)
        drawn = of * ranks + np.searchsorted(upto, rng.random(len(of)), side="right")
        keys = np.concatenate([kept, drawn])
        _, first = np.unique(keys, return_index=True)
        keys = keys[np.sort(first)]
        keys = keys[np.argsort(keys // ranks, kind="stable")]
        held = np.bincount(keys // ranks, minlength=len(wanted))
        place = np.arange(len(keys)) - np.repeat(np.cumsum(held) - held, held)
        kept = keys[place < wanted[keys // ranks]]
        lacking = wanted - np.minimum(held, wanted)
    return kept % ranks


def as_problem(drawn: Drawn, hosts: Hosts, source_at: Ints) -> Problem:
    """The same as a Problem: providers are the first hosts, source i is at host `source_at[i]`."""
    substreams, queries = len(drawn.substreams), len(drawn.queries)
    rows = drawn.queries.interests
    result_bps = np.asarray(drawn.queries.results.sum(axis=1)).ravel()
    none = np.full(queries, NONE, np.int32)
    return Problem(
        hosts,
        Streams(
            (*(f"s{i}" for i in range(substreams)), *(f"r{i}" for i in range(queries))),
            floats(np.concatenate([drawn.substreams.rate_bps, result_bps])),
            ints(np.concatenate([source_at[drawn.substreams.source], none])),
        ),
        Operators(
            tuple(f"o{i}" for i in range(queries)),
            Ragged(rows.indptr.astype(np.int64), ints(rows.indices)),
            ints(substreams + np.arange(queries)),
            drawn.queries.weight,
            drawn.queries.state_bytes,
            ints(none),
        ),
        Queries(
            tuple(f"q{i}" for i in range(queries)),
            ints(substreams + np.arange(queries)),
            drawn.proxy,
            floats(np.full(queries, np.inf)),
        ),
    )
