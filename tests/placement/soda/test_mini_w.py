import pytest
from tests.placement.soda.test_macro_w import problem

from thalweg.placement.cost import Weights
from thalweg.placement.soda.layout import Layout
from thalweg.placement.soda.mini_w import improve, place_one, value

BALANCE = Weights(network=0.0)


def at(asked, *hosts):
    layout = Layout(asked)
    for operator, host in enumerate(hosts):
        layout.put(operator, host)
    return layout


def test_an_operator_goes_where_load_stays_even():
    layout = at(problem(), 0, 0)
    place_one(layout, 2, BALANCE)
    assert layout.host_of[2] == 1


def test_moves_even_out_the_load():
    layout = at(problem(cpu=20), 0, 0, 0, 0)
    improve(layout, BALANCE, 100, lambda _: True)
    assert sorted(layout.host_of.values()) == [0, 0, 1, 1]


def test_swaps_do_where_no_move_helps():
    """Loads of 7 + 3 and 4 + 2 become 7 + 2 and 4 + 3 only by a swap that costs no more room."""
    asked = problem(cpu=10.0)
    asked.operators.cpu.flags.writeable = True
    asked.operators.cpu[:] = [7, 3, 4, 2]
    layout = at(asked, 0, 0, 1, 1)
    improve(layout, BALANCE, 100, lambda _: True)
    assert sorted(layout.cpu.tolist()) == [7, 9]
    assert layout.host_of[0] != layout.host_of[2]


def test_overload_is_removed_before_anything_else():
    layout = at(problem(cpu=9.0), 0, 0, 0, 1)
    assert layout.overload() > 0
    improve(layout, BALANCE, 100, lambda _: True)
    assert layout.overload() == 0


def test_what_must_not_run_is_not_taken():
    layout = at(problem(cpu=20), 0, 0, 0, 0)
    improve(layout, BALANCE, 100, lambda _: False)
    assert set(layout.host_of.values()) == {0}


def test_tries_are_counted():
    layout = at(problem(cpu=20, joins=8), *[0] * 8)
    improve(layout, BALANCE, 1, lambda _: True)
    assert sorted(layout.host_of.values()) == [0] * 7 + [1]


def test_pinned_operators_stay():
    layout = at(problem(cpu=20, pinned="h0"), 0, 0, 0, 0)
    improve(layout, BALANCE, 100, lambda _: True)
    assert set(layout.host_of.values()) == {0}


def test_value_weighs_traffic_and_the_busiest_host():
    layout = at(problem(), 0, 0, 1, 1)
    overload, weighed, _ = value(layout, Weights(network=2.0, balance=3.0))
    assert overload == 0
    assert weighed == pytest.approx(2.0 * 50 / 200 + 3.0 * 0.8)
