"""What results take beside the work in them."""

import pytest

from thalweg.engine.site.delays import Delays, Took

READS = {"join": ("Bids", "Sold"), "filter": ("Bids",)}


def delays() -> Delays:
    return Delays(lambda run: READS.get(run, ()))


def test_a_query_that_never_waits_has_the_ratio_one():
    found = delays()
    found.ticked(0.02, {"filter": 0.02})
    assert found.of("filter") == Took(0.02, 0.02)
    assert found.of("filter").pr == 1  # type: ignore[union-attr]
    assert found.of("join") is None


def test_waiting_at_a_busy_node_is_in_the_ratio():
    found = delays()
    found.ticked(0.5, {"filter": 0.1})
    took = found.of("filter")
    assert took is not None
    assert took.pr == pytest.approx(5)
    assert took.cpr == 0


def test_what_came_from_other_nodes_has_taken_time_and_work_there():
    found = delays()
    found.came("Bids", Took(0.1, 0.05).after_hop(0.2))
    found.came("Sold", Took(0.01, 0.01).after_hop(0.02))
    found.ticked(0.1, {"join": 0.05})
    took = found.of("join")
    assert took == Took(pytest.approx(0.4), pytest.approx(0.1), pytest.approx(0.2))
    assert took.pr == pytest.approx(4)  # of it 2 between nodes
    assert took.cpr == pytest.approx(2)


def test_one_slow_tick_among_many_hardly_shows():
    found = delays()
    for _ in range(50):
        found.ticked(0.01, {"filter": 0.01})
    found.ticked(1.0, {"filter": 0.01})
    took = found.of("filter")
    assert took is not None
    assert took.delay_s == pytest.approx(0.109)
    for _ in range(50):
        found.ticked(0.01, {"filter": 0.01})
    assert found.of("filter").delay_s < 0.011  # type: ignore[union-attr]


def test_queries_that_are_gone_are_forgotten():
    found = delays()
    for number in range(1_000):
        found.ticked(0.01, {"filter": 0.01, f"gone-{number}": 0.01})
    assert found.of("filter") is not None
    assert found.of("gone-0") is None
