"""What happens to messages on the way."""

from collections import Counter

import pytest

from thalweg.overlay.generator import Generator
from thalweg.sim.weather import Rates, Weather


def _journey(weather, count=2_000, now_us=0, link=(0, 1)):
    befell = []
    delays = [weather.delays_us(now_us, *link, befell) for _ in range(count)]
    return delays, Counter(befell)


def test_fine_weather_delays_nothing():
    delays, faults = _journey(Weather(Generator(1)))
    assert set(delays) == {(0,)}
    assert not faults


def test_rates_are_kept_and_counted():
    rates = Rates(loss=0.1, duplication=0.2, reordering=0.3, delay=0.1)
    delays, faults = _journey(Weather(Generator(1), rates))
    assert 150 < faults["loss"] == delays.count(()) < 250
    assert 330 < faults["duplication"] == sum(len(d) == 2 for d in delays) < 470
    assert 530 < faults["reordering"] < 670
    assert 150 < faults["delay"] < 250
    assert max(max(d, default=0) for d in delays) <= rates.delay_us


def test_a_partition_cuts_both_ways_and_spares_the_inside():
    weather = Weather(Generator(1), side={1: 1}, cut=frozenset({(0, 1), (1, 0)}))
    for link, passes in (((0, 1), False), ((1, 0), False), ((0, 2), True), ((1, 1), True)):
        delays, _ = _journey(weather, 1, link=link)
        assert (delays == [(0,)]) == passes


def test_a_one_way_partition_lets_answers_through():
    weather = Weather(Generator(1), side={1: 1}, cut=frozenset({(0, 1)}))
    assert _journey(weather, 1, link=(0, 1))[0] == [()]
    assert _journey(weather, 1, link=(1, 0))[0] == [(0,)]


def test_a_clogged_link_holds_messages_until_it_is_free():
    weather = Weather(Generator(1), clogged_until_us={(0, 1): 700})
    assert _journey(weather, 1, now_us=500)[0] == [(200,)]
    assert _journey(weather, 1, now_us=800)[0] == [(0,)]
    assert _journey(weather, 1, now_us=500, link=(1, 0))[0] == [(0,)]


@pytest.mark.parametrize(
    ("rates", "what"),
    [
        ({"loss": 1.5}, "loss of 1.5"),
        ({"delay": -0.1}, "delay of -0.1"),
        ({"loss": 0.7, "delay": 0.7}, "can't exceed 1"),
        ({"delay_us": -1}, "can't be negative"),
    ],
)
def test_impossible_rates_are_refused(rates, what):
    with pytest.raises(ValueError, match=what):
        Rates(**rates)
