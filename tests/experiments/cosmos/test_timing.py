"""Steps of different subtrees go on at the same time."""

from __future__ import annotations

from thalweg.experiments.cosmos.timing import Stopwatch
from thalweg.placement.cosmos.hierarchy import Cluster


def test_the_response_is_the_longest_chain_up_and_down() -> None:
    quick, slow = (Cluster(i, (Cluster(i), Cluster(i + 1))) for i in (0, 2))
    root = Cluster(0, (quick, slow))
    watch = Stopwatch()
    watch.spent = {
        (id(quick), "coarsen"): 1.0,
        (id(slow), "coarsen"): 3.0,
        (id(root), "coarsen"): 2.0,
        (id(root), "map"): 5.0,
        (id(quick), "settle"): 4.0,
        (id(slow), "settle"): 1.0,
        (id(root), "exchange"): 0.5,
    }
    assert watch.response_s(root) == 3 + 2 + 5 + 4 + 0.5
    assert watch.total_s == 16.5


def test_what_is_done_is_returned_and_its_time_kept() -> None:
    watch, root = Stopwatch(), Cluster(0)
    assert watch(root, "map", lambda: 7) == 7
    assert set(watch.spent) == {(id(root), "map")}
