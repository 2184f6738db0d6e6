"""Windows check themselves, and say when a tuple is in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.plan.types import BIGINT, TIMESTAMP, VARCHAR
from thalweg.plan.windows import Bounds, HopWindow, SessionWindow, TimeWindow

lengths = st.integers(1, 20)


@given(st.integers(-100, 100), lengths, st.integers(1, 5))
def test_a_hopping_window_is_a_sliding_one_of_tuples_an_instant_later(stamp, slide, count):
    hop = HopWindow(slide * count, slide)
    assert hop.interval(stamp) == TimeWindow(slide * count - 1, slide).interval(stamp + 1)


@given(st.integers(-100, 100), lengths, st.integers(1, 5))
def test_a_tuple_is_in_as_many_windows_as_there_are_hops_in_the_length(stamp, slide, count):
    hop = HopWindow(slide * count, slide)
    start, end = hop.interval(stamp)
    assert stamp < start <= stamp + hop.delay
    ends = [e for e in range(start, end, slide) if e - hop.length <= stamp < e]
    assert len(ends) == (end - start) // slide == hop.count


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: HopWindow(10, 3),
        lambda: HopWindow(3, 10),
        lambda: HopWindow(10, 0),
        lambda: SessionWindow(0),
        lambda: Bounds(VARCHAR),
        lambda: Bounds(BIGINT, 1000),
    ],
)
def test_wrong_windows_cannot_be_built(wrong):
    with pytest.raises(ValueError, match=r"window|gap|instants"):
        wrong()


def test_windows_are_written_as_people_write_them():
    assert str(HopWindow(10, 10)) == "[Tumble 10]"
    assert str(HopWindow(10, 5, Bounds(TIMESTAMP, 1000))) == "[Hop 10 Every 5]"
    assert str(SessionWindow(5, (1,))) == "[Session 5 Partition By #1]"
