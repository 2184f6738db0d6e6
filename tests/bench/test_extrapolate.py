import pytest

from bench.extrapolate import linear


@pytest.mark.parametrize(
    ("seconds", "queries", "expected"),
    [
        ({1: 10.0, 8: 24.0}, 64, 24.0 + 56 * 2),
        ({8: 24.0, 1: 10.0}, 8, 24.0),
        ({1: 99.0, 8: 24.0, 64: 80.0}, 1_000, 80.0 + 936),
        ({1: 20.0, 8: 18.0}, 1_000, 18.0),
    ],
)
def test_the_line_through_the_two_largest(seconds, queries, expected):
    assert linear(seconds, queries) == pytest.approx(expected)


@pytest.mark.parametrize("seconds", [{}, {8: 16.0}])
def test_less_than_two_runs_make_no_line(seconds):
    assert linear(seconds, 64) is None
