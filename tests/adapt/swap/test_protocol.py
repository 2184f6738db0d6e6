"""One site of SwAP, step by step: what is written before it is sent, and what is refused."""

import pytest

from thalweg.adapt.swap.messages import SINK, Accepted, Batch, Closing, End, Feed, Row, Run, Taken
from thalweg.adapt.swap.protocol import Swap
from thalweg.adapt.swap.query import FOREVER, SwapQuery
from thalweg.adapt.swap.settings import SwapSettings
from thalweg.adapt.swap.sites import site_of
from thalweg.overlay.protocol import Call, Deliver, Init, Persist, Receive, Send
from thalweg.placement.swap.join_graph import AnnotatedJoinGraph, Edge, JoinGraph, JoinGraphError

GRAPH = JoinGraph(("R", "S", "T"), (Edge(0, 0, 1, 0), Edge(1, 1, 2, 0)))
PLACED = AnnotatedJoinGraph(GRAPH, (("a",), ("b",), ("c",)), (("a",), ("c",)))
WINDOWS = (10, 10, 10)


def query(windows=WINDOWS, placed=PLACED):
    return SwapQuery("q", placed, windows, ((0, 0), (1, 1), (2, 0)), "d")


class Site:
    def __init__(self, address, of=None):
        self.address, self.disk = address, {}
        self.start()
        self.call(Run(of or query()))

    def start(self):
        self.swap = Swap(SwapSettings())
        self.done(self.swap.step(0, Init(self.address, 1, dict(self.disk))))

    def done(self, effects):
        for effect in effects:
            if isinstance(effect, Persist):
                if effect.value is None:
                    self.disk.pop(effect.key, None)
                else:
                    self.disk[effect.key] = effect.value
        self.effects = effects
        self.sent = [(e.to, e.message) for e in effects if isinstance(e, Send)]
        self.delivered = [e.value for e in effects if isinstance(e, Deliver)]
        return self

    def call(self, request):
        return self.done(self.swap.step(0, Call(request)))

    def receive(self, sender, message):
        return self.done(self.swap.step(0, Receive(sender, message)))

    def batches(self):
        return [(to, m) for to, m in self.sent if isinstance(m, Batch) and m.entries]


def test_a_row_has_one_next_site_and_it_is_on_disk_before_it_is_sent():
    site = Site("b").call(Feed("q", 1, ((1, 5, (7, 8)),), 5))
    ((to, batch),) = site.batches()
    assert to in ("a", "c")
    assert f"q/out/1/{batch.target}/{to}/1" in site.disk
    site.start()  # and stays so
    site.call(Feed("q", 1, (), 6))
    ((again, same),) = site.batches()
    assert (again, same.target, same.entries) == (to, batch.target, batch.entries)
    site.receive(to, Taken("q", 1, batch.target, 1, (9, 9, 9)))
    assert not [k for k in site.disk if k.startswith("q/out")]


def test_the_later_row_makes_the_pair_whichever_it_is():
    for r_first in (True, False):
        site = Site("a")
        fed = Feed("q", 0, ((1, 5, (7,)),), 5)
        came = Batch("q", 1, 0, 1, (Row(1, 6, 17, 0b010, ((1, (7, 8)),)),), 1, ())
        made = site.call(fed).batches() if r_first else []
        made += site.receive("b", came).batches()
        made += [] if r_first else site.call(fed).batches()
        ((to, batch),) = made
        assert to == "c"
        (row,) = batch.entries
        assert (row.start, row.end, row.footprint) == (6, 16, 0b011)
        assert row.parts == ((0, (7,)), (1, (7, 8)))


def test_rows_that_never_hold_together_make_no_pair():
    site = Site("a").call(Feed("q", 0, ((1, 5, (7,)),), 5))
    late = Row(1, 16, 27, 0b010, ((1, (7, 8)),))
    assert not site.receive("b", Batch("q", 1, 0, 1, (late,), 1, ())).batches()


def test_what_comes_twice_or_too_early_is_not_taken():
    site = Site("a").call(Feed("q", 0, ((1, 5, (7,)),), 5))
    rows = tuple([Row(n, 6, 17, 0b010, ((1, (7, n)),)) for n in (1, 2, 3)])
    assert not site.receive("b", Batch("q", 1, 0, 2, rows[1:], 3, ())).batches()
    assert site.sent[-1][1].upto == 0
    site.receive("b", Batch("q", 1, 0, 1, rows[:2], 2, ()))
    assert len(site.batches()[0][1].entries) == 2
    site.receive("b", Batch("q", 1, 0, 1, rows, 3, ()))
    assert len(site.batches()[0][1].entries) == 1


def test_an_end_follows_its_row():
    site = Site("b", query((10, None, 10))).call(Feed("q", 1, ((1, 5, (7, 8)),), 5))
    ((to, batch),) = site.batches()
    assert batch.entries[0].end == FOREVER
    ((there, closing),) = site.call(End("q", 1, 1, 9)).batches()
    assert there == to
    assert closing.entries == (Closing(batch.entries[0].number, 9),)


def test_an_end_ends_what_was_made_of_the_row_wherever_it_went():
    site = Site("a", query((10, None, 10))).call(Feed("q", 0, ((1, 5, (7,)),), 5))
    row = Row(1, 6, FOREVER, 0b010, ((1, (7, 8)),))
    ((_, made),) = site.receive("b", Batch("q", 1, 0, 1, (row,), 1, ())).batches()
    ((to, ended),) = site.receive("b", Batch("q", 1, 0, 2, (Closing(1, 9),), 2, ())).batches()
    assert to == "c"
    assert ended.entries == (Closing(made.entries[0].number, 9),)


def test_a_row_goes_when_all_frontiers_have_passed_its_end():
    site = Site("a").call(Feed("q", 0, ((1, 5, (7,)),), 30))
    stem = site.swap.queries["q"].eddies[0].stems[0]
    site.receive("b", Batch("q", 1, 0, 1, (), 0, ((0b010, 30),)))
    assert stem.rows  # T may still send S rows that came by site c
    site.receive("c", Batch("q", 2, 0, 1, (), 0, ((0b110, 15),)))
    assert stem.rows
    site.receive("c", Batch("q", 2, 0, 1, (), 0, ((0b110, 16),)))
    assert not stem.rows
    assert not [k for k in site.disk if k.startswith("q/row")]


def test_a_repeated_feed_counts_once():
    site = Site("b")
    feed = Feed("q", 1, ((1, 5, (7, 8)),), 5)
    site.call(feed)
    site.call(feed)
    assert not site.batches()
    assert site.delivered == [Accepted(Feed("q", 1, (), 5))]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Feed("q", 0, (), 5), "not delegated here"),
        (Feed("q", 1, ((2, 9, (1, 1)), (3, 4, (1, 1))), 9), "behind"),
        (End("q", 1, 1, 7), "can't be ended"),
        ("anything", "can't"),
        (Run(query((20, 20, 20))), "another query q"),
    ],
)
def test_what_is_refused_leaves_nothing_behind(request_, message):
    site = Site("b").call(Feed("q", 1, ((1, 5, (7, 8)),), 5))
    kept, state = dict(site.disk), site.swap.queries["q"]
    with pytest.raises((ValueError, TypeError), match=message):
        site.call(request_)
    assert site.disk == kept
    assert state.homes[1].last_key == 1
    assert not state.effects


def test_a_tuple_at_the_wrong_part_of_a_stream_is_refused():
    sites = ("a", "b")
    graph = JoinGraph(("R", "S"), (Edge(0, 0, 1, 0),))
    placed = AnnotatedJoinGraph(graph, (sites, ("c",)), (sites,), (0, None))
    parts = SwapQuery("q", placed, (10, 10), ((0, 0),), "c")
    theirs = next(v for v in range(100) if site_of(v, sites) == "b")
    with pytest.raises(ValueError, match="belongs to b"):
        Site("a", parts).call(Feed("q", 0, ((1, 1, (theirs,)),), 1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: query((10, 10)), "has a window"),
        (lambda: query((10, -1, 10)), "negative"),
        (lambda: SwapQuery("a/b", PLACED, WINDOWS, (), "d"), "no slash"),
    ],
)
def test_queries_that_make_no_sense_are_refused(make, message):
    with pytest.raises(JoinGraphError, match=message):
        make()


def test_settings_of_nothing_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        SwapSettings(batch_rows=0)


def test_results_go_to_the_sink_from_whichever_site_finishes_them():
    site = Site("c").call(Feed("q", 2, ((1, 5, (8,)),), 5))
    whole = Row(1, 6, 16, 0b011, ((0, (7,)), (1, (7, 8))))
    ((to, batch),) = site.receive("a", Batch("q", 0, 2, 1, (whole,), 1, ())).batches()
    assert (to, batch.target) == ("d", SINK)
