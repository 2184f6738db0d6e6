"""Gossip, step by step."""

import pytest

from thalweg.overlay.gossip import Gossip, GossipTimes, Pull, Push
from thalweg.overlay.protocol import Heard, Init, Receive, Send, SetTimer, Tell, TimerFired
from thalweg.overlay.query_spreading import Differs, Learn, Learned, QuerySpreading
from thalweg.overlay.query_table import Record

SECOND = 1_000_000
TIMES = GossipTimes(floor_us=10 * SECOND, ceiling_us=1_000 * SECOND, settle_us=2 * SECOND)


class Known:
    def __init__(self, *neighbours):
        self._neighbours = list(neighbours)

    def neighbours(self):
        return self._neighbours


def node(*records, times=TIMES, neighbours=("a",)):
    spreading = QuerySpreading(Known(*neighbours))
    for record in records:
        spreading.table.merge(record)
    gossip = Gossip(Known(*neighbours), spreading, times)
    gossip.step(0, Init("me", 1, {}))
    return gossip, spreading.table


def sends(effects):
    return [(e.to, e.message) for e in effects if isinstance(e, Send)]


def timers(effects):
    return {e.key: e.after_us for e in effects if isinstance(e, SetTimer)}


def query(i, dropped=False):
    return Record(f"q{i}", "" if dropped else f"SELECT {i}", dropped)


def arrive(gossip, now_us):
    return gossip.step(now_us, Heard("query-spreading", Learned(query(0), 3)))


def test_a_node_that_starts_gossips_soon():
    gossip, _ = node()
    effects = gossip.step(0, Init("me", 2, {}))
    assert 0 < timers(effects)["round"] <= 2 * TIMES.settle_us


def test_a_round_asks_a_neighbour_with_a_digest_of_the_whole_table():
    gossip, table = node(query(1))
    effects = gossip.step(9, TimerFired("round"))
    assert sends(effects) == [("a", Pull(table.hashes))]
    assert timers(effects) == {"round": TIMES.ceiling_us}


def test_without_neighbours_a_round_waits_for_the_next():
    gossip, _ = node(neighbours=())
    assert sends(gossip.step(9, TimerFired("round"))) == []


def test_equal_tables_need_no_answer():
    gossip, table = node(query(1))
    assert gossip.step(0, Receive("b", Pull(table.hashes))) == []


def test_differences_are_settled_in_both_directions():
    """Ours: 1, 2 and the tombstone of 3. Theirs: 2, 3 and 4."""
    ours, our_table = node(query(1), query(2), query(3, dropped=True))
    theirs, their_table = node(query(2), query(3), query(4))
    ((to, push),) = sends(theirs.step(0, Receive("us", Pull(our_table.hashes))))
    assert to == "us"
    effects = ours.step(0, Receive("them", push))
    learned = [e.request for e in effects if isinstance(e, Tell)]
    assert [type(r) for r in learned] == [Learn]
    assert query(4) in learned[0].records
    ((to, answer),) = sends(effects)
    assert to == "them"
    assert isinstance(answer, Push)
    assert {r.id for r in answer.records} == {"q1", "q3"}
    for record in answer.records:
        their_table.merge(record)
    assert their_table.standing == ["q1", "q2", "q4"]
    final = theirs.step(0, Receive("us", answer))
    assert sends(final) == []  # an answer is not answered


def test_a_difference_seen_on_the_tree_is_asked_about_once_it_should_have_passed():
    gossip, table = node()
    assert timers(gossip.step(0, Heard("query-spreading", Differs("x")))) == {
        "ask": TIMES.settle_us
    }
    assert gossip.step(1, Heard("query-spreading", Differs("y"))) == []
    assert sends(gossip.step(2, TimerFired("ask"))) == [("x", Pull(table.hashes))]
    assert timers(gossip.step(3, Heard("query-spreading", Differs("y")))) != {}


def test_an_arriving_query_starts_the_period_anew():
    gossip, _ = node()
    assert timers(arrive(gossip, 5 * SECOND)) == {"round": gossip.period_us}


def test_the_period_is_twice_the_longest_silence_of_late():
    gossip, _ = node()
    assert gossip.period_us == TIMES.ceiling_us
    for at in (100, 200, 300):
        arrive(gossip, at * SECOND)
    assert gossip.period_us == TIMES.ceiling_us  # too few to tell
    arrive(gossip, 430 * SECOND)
    assert gossip.period_us == 2 * 130 * SECOND
    for i in range(1, 9):
        arrive(gossip, (430 + 20 * i) * SECOND)
    assert gossip.period_us == 2 * 20 * SECOND


def test_news_are_passed_on_to_those_below_in_the_last_tree():
    gossip, _ = node()
    gossip._spreading.below = ("x", "y", "them")
    effects = gossip.step(0, Receive("them", Push((), (query(1),))))
    assert sends(effects) == [(a, Push((), (query(1),))) for a in ("x", "y")]
    gossip._table.merge(query(1))
    assert gossip.step(0, Receive("z", Push((), (query(1),)))) == []


def test_what_gossip_brings_does_not_count_as_an_arrival():
    gossip, _ = node()
    for i in range(50):
        gossip.step(i * SECOND, Heard("query-spreading", Learned(query(i), None)))
    assert gossip.period_us == TIMES.ceiling_us


def test_the_period_has_a_floor_and_a_ceiling():
    gossip, _ = node()
    for i in range(90):
        arrive(gossip, i)
    assert gossip.period_us == TIMES.floor_us
    for i in range(50):
        arrive(gossip, i * 10_000 * SECOND)
    assert gossip.period_us == TIMES.ceiling_us


def test_rounds_in_which_nothing_comes_are_ever_farther_apart():
    gossip, _ = node()
    for i in range(1, 20):
        arrive(gossip, i * 50 * SECOND)
    before = gossip.period_us
    waits = [timers(gossip.step(2_000 * SECOND, TimerFired("round")))["round"] for _ in range(3)]
    assert waits == [2 * before, 4 * before, 8 * before]
    arrive(gossip, 1_000 * SECOND)
    assert gossip.period_us == pytest.approx(before, rel=0.1)


def test_a_fixed_period_stays():
    gossip, _ = node(times=GossipTimes(fixed_us=7 * SECOND))
    for i in range(9):
        arrive(gossip, i * SECOND)
    assert gossip.period_us == 7 * SECOND


@pytest.mark.parametrize("times", [{"floor_us": 0}, {"ceiling_us": 5}, {"fixed_us": 0}])
def test_times_that_make_no_sense_are_refused(times):
    with pytest.raises(ValueError, match=r"T_gossip|negative"):
        GossipTimes(**times)
