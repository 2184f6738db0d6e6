"""Windows: CQL's definition here, intervals of single tuples in the plan. They must agree."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from thalweg.engine.reference.windows import Stamped, content, turns
from thalweg.plan.windows import NOW, UNBOUNDED, RowsWindow, TimeWindow

TIME_WINDOWS = st.builds(TimeWindow, st.one_of(st.none(), st.integers(0, 12)), st.integers(1, 7))
ROWS_WINDOWS = st.builds(
    RowsWindow, st.integers(1, 4), st.integers(1, 4), st.sampled_from([(), (0,)])
)
KEYS = st.sampled_from(["a", "b", None])
STREAMS = st.lists(st.tuples(st.integers(-9, 20), KEYS), max_size=9).map(
    lambda drawn: [
        Stamped(ts, (key, number))
        for number, (ts, key) in enumerate(sorted(drawn, key=lambda d: d[0]))
    ]
)
INSTANTS = range(-15, 45)


def held(spec, tuples, now):
    return Counter(content(spec, tuples, now))


@given(TIME_WINDOWS, STREAMS)
def test_time_window_holds_the_tuples_whose_interval_covers_the_instant(spec, tuples):
    for now in INSTANTS:
        covered = [
            t.row
            for t in tuples
            if spec.interval(t.timestamp)[0] <= now < spec.interval(t.timestamp)[1]
        ]
        assert held(spec, tuples, now) == Counter(covered)


@given(ROWS_WINDOWS, STREAMS)
def test_rows_window_holds_the_tuples_between_their_entering_and_leaving_row(spec, tuples):
    for now in INSTANTS:
        expected = Counter()
        for key in {tuple(t.row[k] for k in spec.partition_by) for t in tuples}:
            of_key = [t for t in tuples if tuple(t.row[k] for k in spec.partition_by) == key]
            come = sum(t.timestamp <= now for t in of_key)
            expected += Counter(
                t.row
                for number, t in enumerate(of_key, 1)
                if spec.entering_row(number) <= come < spec.leaving_row(number)
            )
        assert held(spec, tuples, now) == expected


@given(st.one_of(TIME_WINDOWS, ROWS_WINDOWS), STREAMS)
def test_content_changes_only_at_the_turns(spec, tuples):
    known = set(turns(spec, tuples))
    for now in INSTANTS:
        if now not in known:
            assert held(spec, tuples, now) == held(spec, tuples, now - 1)


@given(TIME_WINDOWS, STREAMS)
def test_a_time_windows_turns_are_the_ends_of_its_intervals_and_nothing_else(spec, tuples):
    ends = [spec.interval(t.timestamp) for t in tuples]
    bounded = spec.length is not None
    expected = {start for start, end in ends if start < end}
    expected |= {end for start, end in ends if start < end and bounded}
    assert set(turns(spec, tuples)) == expected


def test_windows_by_hand():
    tuples = [Stamped(3, ("a",)), Stamped(5, ("b",)), Stamped(5, ("c",)), Stamped(9, ("d",))]
    assert content(NOW, tuples, 5) == [("b",), ("c",)]
    assert content(TimeWindow(2), tuples, 5) == [("a",), ("b",), ("c",)]
    assert content(TimeWindow(2), tuples, 6) == [("b",), ("c",)]
    assert content(TimeWindow(4, slide=4), tuples, 11) == [("b",), ("c",)]  # as seen at 8
    assert content(UNBOUNDED, tuples, 8) == [("a",), ("b",), ("c",)]
    assert content(RowsWindow(2), tuples, 5) == [("b",), ("c",)]
    assert content(RowsWindow(2, slide=2), tuples, 5) == [("a",), ("b",)]
