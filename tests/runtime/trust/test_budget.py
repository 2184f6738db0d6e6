"""Rows per second."""

from hypothesis import given
from hypothesis import strategies as st

from thalweg.runtime.trust import Budget


def test_without_a_limit_nothing_waits():
    assert Budget(None).take(10**9, 0.0) == 0


def test_a_limit_of_zero_lets_nothing_pass():
    assert Budget(0).take(1, 0.0) == float("inf")
    assert Budget(0).take(0, 0.0) == 0


def test_what_exceeds_the_budget_waits_for_it():
    budget = Budget(100)
    assert budget.take(80, 0.0) == 0
    assert budget.take(50, 0.0) == 0.3  # 20 are left
    assert budget.take(50, 0.3) == 0
    assert budget.take(1, 0.3) > 0


def test_a_large_batch_passes_once_the_budget_is_full_and_the_next_pays():
    budget = Budget(100)
    assert budget.take(1_000, 0.0) == 0
    assert budget.take(10, 1.0) > 7
    assert budget.take(10, 9.2) == 0


@given(st.lists(st.tuples(st.integers(1, 500), st.floats(0, 3)), max_size=60), st.floats(1, 1_000))
def test_on_average_the_rate_holds_and_who_waits_gets_through(batches, rate):
    budget, now_s, taken, largest = Budget(rate), 0.0, 0, 0
    for rows, pause_s in batches:
        now_s += pause_s
        wait_s = budget.take(rows, now_s)
        if wait_s:
            now_s += wait_s + 1e-6
            assert budget.take(rows, now_s) == 0
        taken += rows
        largest = max(largest, rows)
    assert taken <= rate * (now_s + 1) + largest + 1e-3


def test_a_clock_that_steps_back_gives_nothing_away():
    budget = Budget(100)
    assert budget.take(100, 10.0) == 0
    assert budget.take(100, 5.0) > 0
    assert budget.take(100, 10.5) > 0
