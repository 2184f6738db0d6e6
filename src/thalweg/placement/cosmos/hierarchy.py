"""The tree of coordinators as placement sees it: clusters of near providers, level by level.

Source: COSMOS 3.3.3. The tree itself is kept by a protocol (`overlay.coordinators`); here it is
plain data, which a caller makes from that protocol's state, or `cluster` makes from latencies by
the same rules: clusters of k to 3k − 1, cut in two where the larger radius is least, led by their
medians.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from thalweg.placement.arrays import Floats, Ints, ints


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """A provider by itself (no children), or a coordinator at its centre with what is below."""

    centre: int
    children: tuple[Cluster, ...] = ()
    providers: Ints = field(init=False)  # all below, in the order of the tree

    def __post_init__(self) -> None:
        below = [c.providers for c in self.children] or [np.array([self.centre])]
        object.__setattr__(self, "providers", ints(np.concatenate(below)))
        if len(set(self.providers.tolist())) != len(self.providers):
            raise ValueError(f"a provider stands twice under the coordinator {self.centre}")
        if len({c.height for c in self.children}) > 1:
            raise ValueError(f"the children of coordinator {self.centre} are not of one level")

    @property
    def is_provider(self) -> bool:
        return not self.children

    @property
    def height(self) -> int:
        return 1 + max((c.height for c in self.children), default=-1)

    def coordinators(self) -> Iterator[Cluster]:
        """Itself and those below, from above."""
        if self.children:
            yield self
        for child in self.children:
            yield from child.coordinators()


def cluster(latency_ms: Floats, k: int = 4) -> Cluster:
    """The tree over all providers; its root may have fewer children than k."""
    if k < 2:
        raise ValueError("a cluster has at least two members: k is 2 or more")
    if not len(latency_ms):
        raise ValueError("there are no providers to cluster")
    level = [Cluster(i) for i in range(len(latency_ms))]
    while len(level) > 1:
        centres = np.array([c.centre for c in level])
        between = latency_ms[np.ix_(centres, centres)]
        level = [
            Cluster(int(centres[_median(between, part)]), tuple(level[i] for i in part))
            for part in _parts(between, np.arange(len(level)), k)
        ]
    return level[0]


def _median(between: Floats, part: npt.NDArray[np.int64]) -> int:
    return int(part[np.argmin(between[np.ix_(part, part)].sum(axis=1))])


def _parts(
    between: Floats, members: npt.NDArray[np.int64], k: int
) -> Sequence[npt.NDArray[np.int64]]:
    """Cut in two until every part has at most 3k − 1 members; none has fewer than k."""
    if len(members) < 3 * k:
        return [members]
    near, far = _cut(between, members, k)
    return [*_parts(between, near, k), *_parts(between, far, k)]


def _cut(
    between: Floats, members: npt.NDArray[np.int64], least: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Between the two members that lie farthest apart, where the larger radius is least."""
    inside = between[np.ix_(members, members)]
    a, b = np.unravel_index(np.argmax(inside), inside.shape)
    line = np.argsort(inside[a] - inside[b], kind="stable")
    radius_a = np.maximum.accumulate(inside[a][line])
    radius_b = np.maximum.accumulate(inside[b][line][::-1])[::-1]
    cuts = np.arange(least, len(line) - least + 1)
    larger = np.maximum(radius_a[cuts - 1], radius_b[cuts])
    cut = int(cuts[np.argmin(larger)])
    return members[line[:cut]], members[line[cut:]]
