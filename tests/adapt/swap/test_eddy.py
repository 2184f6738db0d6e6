"""The eddy of one node: probes go where they give least."""

from thalweg.adapt.swap.eddy import Eddy
from thalweg.adapt.swap.messages import Row
from thalweg.adapt.swap.query import SwapQuery
from thalweg.placement.swap.join_graph import AnnotatedJoinGraph, Edge, JoinGraph

GRAPH = JoinGraph(("R", "S", "T"), (Edge(0, 0, 1, 0), Edge(1, 0, 2, 0)))
ONE_SITE = AnnotatedJoinGraph(GRAPH, (("a",),) * 3, (("a",),) * 2)


def arrive(eddy, stream, value, at=0):
    row = Row(at, at, at + 1_000, 0, ((stream, (value,)),))
    number = eddy.number()
    made = list(eddy.made_with(stream, number, row))
    eddy.store(number, stream, row, (-1 - stream, "a", number))
    return made


def test_a_row_probes_the_more_selective_stem_first():
    eddy = Eddy(SwapQuery("q", ONE_SITE, (10, 10, 10), (), "a"), 0)
    for _ in range(20):
        arrive(eddy, 0, 7)  # many partners in R
    arrive(eddy, 2, 8)  # and none in T
    for _ in range(50):
        assert arrive(eddy, 1, 7) == []
    before = eddy.probed
    arrive(eddy, 1, 7)
    assert eddy.probed - before == 1  # T's SteM alone: R's would have given twenty rows to probe on


def test_the_newest_row_makes_each_combination_once():
    eddy = Eddy(SwapQuery("q", ONE_SITE, (10, 10, 10), (), "a"), 0)
    assert arrive(eddy, 1, 7) == []
    assert arrive(eddy, 0, 7) == []
    ((row, parents),) = arrive(eddy, 2, 7)
    assert sorted(parents) == [1, 2, 3]
    assert [stream for stream, _ in row.parts] == [0, 1, 2]
    assert len(arrive(eddy, 0, 7)) == 1
    assert len(arrive(eddy, 1, 7)) == 2


def test_null_meets_nothing():
    eddy = Eddy(SwapQuery("q", ONE_SITE, (10, 10, 10), (), "a"), 0)
    for stream in (0, 1, 2):
        assert arrive(eddy, stream, None) == []
