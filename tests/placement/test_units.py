from math import inf

import pytest

from thalweg.placement.units import amount, bps, percent


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, "0 bps"), (999, "999 bps"), (12_500, "12.5 kbps"), (1e7, "10 Mbps"), (2.5e9, "2.5 Gbps")],
)
def test_rates_have_the_prefix_that_suits(value, told):
    assert bps(value) == told


def test_what_is_unlimited_is_told_as_such():
    assert (bps(inf), amount(inf), percent(3, inf)) == ("unlimited", "unlimited", "-")


def test_shares():
    assert (percent(1, 4), percent(0, 0), percent(1, 0)) == ("25%", "0%", "∞")
