"""Whom the balancer moves what from, when, by which way, and why."""

from thalweg.adapt.balancing.costs import Prices, Prospect, cheapest, costs
from thalweg.adapt.balancing.policy import Balancer, Settings
from thalweg.adapt.moves.messages.reports import Load
from thalweg.adapt.moves.query import Query
from thalweg.plan.windows import TimeWindow

QUERY = Query(("A", "B"), (TimeWindow(200), TimeWindow(200)))
SECOND_US = 1_000_000


def loads(*rates, movable=True):
    return {f"n{i}": (Load(0, 8, 0, movable, rate, 10 * rate),) for i, rate in enumerate(rates)}


def decided(balancer, found, upto_s=10, since_s=0):
    for second in range(since_s, upto_s):
        for request in balancer.decide(second * SECOND_US, found):
            return second, request
    return None


def test_the_most_loaded_gives_half_of_the_difference_to_the_least_loaded():
    at, request = decided(Balancer(QUERY, Settings()), loads(100, 900, 300))
    assert (request.sender, request.receiver) == ("n1", "n0")
    assert abs(request.share - 400 / 900) < 1e-9
    assert "n1 has 900" in request.why
    assert at >= 1  # not at the first look


def test_a_small_difference_is_left_alone():
    assert decided(Balancer(QUERY, Settings()), loads(100, 110, 120)) is None
    assert decided(Balancer(QUERY, Settings()), loads(0, 0, 0)) is None


def test_there_is_a_pause_between_two_moves():
    balancer = Balancer(QUERY, Settings(pause_us=5 * SECOND_US))
    first, _ = decided(balancer, loads(100, 900))
    second, _ = decided(balancer, loads(100, 900), 30, first + 1)
    assert second - first >= 5


def test_several_pairs_move_at_once_and_no_node_is_in_two():
    balancer, found = Balancer(QUERY, Settings()), loads(900, 100, 800, 120, 300)
    assert balancer.decide(0, found) == []
    pairs = [(r.sender, r.receiver) for r in balancer.decide(SECOND_US, found)]
    assert pairs == [("n0", "n1"), ("n2", "n3")]


def test_who_is_part_of_a_move_is_left_alone():
    balancer, found = Balancer(QUERY, Settings()), loads(900, 100, 800, 120, 300)
    busy = frozenset(("n0", "n3"))
    assert balancer.decide(0, found, busy) == []
    pairs = [(r.sender, r.receiver) for r in balancer.decide(SECOND_US, found, busy)]
    assert pairs == [("n2", "n1")]


def test_what_is_on_the_move_is_left_alone():
    assert decided(Balancer(QUERY, Settings()), loads(100, 900, movable=False)) is None


def test_much_state_and_few_rows_go_by_ptlb_little_state_and_many_by_pre_copy():
    """D-CAPE 5.3: when moving costs more than a window of double work."""
    prices = Prices()
    assert cheapest(Prospect(1e6, 10.0, 10.0, 2.0), prices).way == "ptlb"
    assert cheapest(Prospect(1e4, 1e5, 1e3, 60.0), prices).way == "precopy"
    still = {c.way: c.standstill for c in costs(Prospect(1e5, 1e4, 1e3, 60.0), prices)}
    assert still["ptlb"] == 0 < still["precopy"] < still["mslb"]
