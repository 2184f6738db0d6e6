"""SwAP queries begin at all sites and end at all of them, whatever is lost on the way."""

from thalweg.adapt.swap.messages import (
    SINK,
    Awaited,
    Batch,
    Began,
    Demand,
    Drop,
    Ended,
    Ends,
    Feed,
    Final,
    NotRunning,
    Row,
    Runs,
    SinkGone,
    Start,
    Submit,
    Took,
)
from thalweg.adapt.swap.protocol import Swap
from thalweg.adapt.swap.query import NEVER, SwapQuery
from thalweg.adapt.swap.settings import SwapSettings
from thalweg.overlay.protocol import Call, Deliver, Init, Persist, Receive, Send, TimerFired
from thalweg.placement.swap.join_graph import AnnotatedJoinGraph, Edge, JoinGraph

GRAPH = JoinGraph(("R", "S"), (Edge(0, 0, 1, 0),))
PLACED = AnnotatedJoinGraph(GRAPH, (("a",), ("b",)), (("a",),))
QUERY = SwapQuery("q", PLACED, (10, 10), ((0, 0),), "d", first=20, sources=("pub/R", "pub/S"))


class Site:
    def __init__(self, address):
        self.address, self.disk = address, {}
        self.start()

    def start(self):
        self.swap = Swap(SwapSettings(managed=True))
        return self.done(self.swap.step(0, Init(self.address, 1, dict(self.disk))))

    def done(self, effects):
        for effect in effects:
            if isinstance(effect, Persist):
                if effect.value is None:
                    self.disk.pop(effect.key, None)
                else:
                    self.disk[effect.key] = effect.value
        self.sent = [(e.to, e.message) for e in effects if isinstance(e, Send)]
        self.delivered = [e.value for e in effects if isinstance(e, Deliver)]
        return self

    def call(self, request):
        return self.done(self.swap.step(0, Call(request)))

    def receive(self, sender, message):
        return self.done(self.swap.step(0, Receive(sender, message)))

    def beat(self):
        return self.done(self.swap.step(0, TimerFired("beat")))

    def said(self, kind):
        return [(to, m) for to, m in self.sent if isinstance(m, kind)]


def test_sites_are_told_to_start_until_they_run_and_then_never_again():
    sink = Site("d").call(Submit(QUERY))
    assert sink.delivered == [Began("q")]
    assert sink.said(Start) == sink.beat().said(Start) == [("a", Start(QUERY)), ("b", Start(QUERY))]
    sink.receive("a", Runs("q", ((0, NEVER),)))
    sink.start()  # it knows, though it crashes
    assert sink.beat().said(Start) == [("b", Start(QUERY))]


def test_a_site_that_was_told_runs_and_says_so_again_and_again():
    site = Site("b").receive("d", Start(QUERY))
    assert site.delivered == [Began("q")]
    assert site.said(Runs) == [("d", Runs("q", ((1, NEVER),)))]
    site.receive("d", Start(QUERY))
    assert site.delivered == []
    site.start()
    site.call(Feed("q", 1, (), 7))
    assert site.beat().said(Runs) == [("d", Runs("q", ((1, 7),)))]


def test_a_query_that_was_dropped_leaves_nothing_at_any_site():
    sink, site = Site("d").call(Submit(QUERY)), Site("b").receive("d", Start(QUERY))
    site.call(Feed("q", 1, ((1, 5, (7,)),), 5))
    sink.call(Drop("q"))
    assert sink.delivered == [Ended("q")]
    assert [k for k in sink.disk if k.startswith("q/")] == []
    ((_, runs),) = site.beat().said(Runs)
    ((to, ends),) = sink.receive("b", runs).said(Ends)
    assert (to, ends) == ("b", Ends("q"))
    site.receive("a", ends)  # only the sink's word counts
    assert "q" in site.swap.queries
    site.receive("d", ends)
    assert site.delivered == [Ended("q")]
    assert [k for k in site.disk if k.startswith("q/")] == []
    assert site.call(Feed("q", 1, (), 9)).delivered == [NotRunning("q")]


def test_a_start_that_was_late_makes_nothing_that_stays():
    sink, site = Site("d"), Site("b").receive("d", Start(QUERY))
    ((_, runs),) = site.said(Runs)
    site.receive("d", sink.receive("b", runs).said(Ends)[0][1])
    assert site.swap.queries == {}


def test_queries_of_a_sink_that_is_gone_end():
    site = Site("b").receive("d", Start(QUERY)).call(SinkGone("x"))
    assert "q" in site.swap.queries
    assert site.call(SinkGone("d")).delivered == [Ended("q")]


def test_a_home_hears_up_to_where_the_others_wait_for_it():
    sink = Site("d").call(Submit(QUERY))
    sink.receive("a", Runs("q", ((0, 30),)))
    sink.receive("b", Runs("q", ((1, 12),)))
    assert sink.said(Awaited) == [("b", Awaited("q", ((1, 30),)))]
    assert sink.receive("a", Runs("q", ((0, 31),))).said(Awaited) == []
    sink.call(Demand("q", 40))
    assert sink.receive("a", Runs("q", ((0, 31),))).said(Awaited) == [
        ("a", Awaited("q", ((0, 40),)))
    ]
    site = Site("b").receive("d", Start(QUERY)).receive("d", Awaited("q", ((1, 30),)))
    assert site.swap.queries["q"].lifecycle.awaited == {1: 30}


def test_results_begin_at_the_first_instant_and_are_kept_until_they_are_taken():
    sink = Site("d").call(Submit(QUERY))
    rows = (
        Row(1, 9, 20, 0b11, ((0, (1,)), (1, (1,)))),  # over before
        Row(2, 15, 22, 0b11, ((0, (2,)), (1, (2,)))),  # holds then
        Row(3, 21, 25, 0b11, ((0, (3,)), (1, (3,)))),
    )
    sink.receive("a", Batch("q", 0, SINK, 1, rows, 3, ((0b11, 24),)))
    final = Final("q", 20, 24, ((20, "+", (2,)), (21, "+", (3,)), (22, "-", (2,))))
    assert sink.delivered == [final]
    sink.start()
    assert list(sink.swap.queries["q"].sink.untaken.values()) == [final]
    sink.call(Took("q", 24))
    assert [k for k in sink.disk if "final" in k] == []
    again = Batch("q", 0, SINK, 4, (), 3, ((0b11, 26),))
    assert sink.receive("a", again).delivered == [Final("q", 24, 26, ((25, "-", (3,)),))]
