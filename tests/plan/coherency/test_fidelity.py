import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.plan.coherency.classes import KeyClasses, Start
from thalweg.plan.coherency.fidelity import Seen, fidelity, loss
from thalweg.plan.coherency.tolerance import Age, ChangesSince, Deviation, Update

SOURCE = [Update(0, 0, 1), Update(1, 10, 5), Update(2, 20, 6)]


def late(*delays):
    return [Seen(u.instant + d, u) for u, d in zip(SOURCE, delays, strict=False)]


def test_the_time_until_a_due_row_arrives_is_lost():
    assert fidelity(Deviation(0), SOURCE, late(0, 3, 2), 0, 100) == pytest.approx(0.95)


def test_what_is_tolerated_is_not_lost():
    assert fidelity(Deviation(1), SOURCE, late(0, 3), 0, 100) == pytest.approx(0.97)


def test_a_source_that_comes_back_ends_the_loss():
    source = [Update(0, 0, 1), Update(1, 10, 5), Update(2, 14, 1)]
    assert fidelity(Deviation(0), source, [Seen(0, source[0])], 0, 100) == pytest.approx(0.96)


def test_updates_behind_and_age():
    assert fidelity(ChangesSince(1), SOURCE, late(0), 0, 40) == pytest.approx(0.5)
    assert fidelity(Age(4), SOURCE, late(0), 0, 40) == pytest.approx(1 - 26 / 40)


def test_a_reader_without_anything_loses_all_and_nothing_before_the_first_row():
    assert fidelity(Deviation(9), SOURCE, [], 0, 10) == 0
    assert fidelity(Deviation(9), [Update(0, 50, 1)], [], 0, 100) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="ends after"):
        fidelity(Deviation(9), SOURCE, [], 5, 5)


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 4)), min_size=1, max_size=20),
    st.sampled_from([Deviation(0), Deviation(2), ChangesSince(2), Age(3)]),
)
def test_who_gets_all_that_is_due_at_once_loses_nothing(drawn, tolerance):
    classes, instant, source, seen = KeyClasses(), 0, [], []
    classes.start(Start(0, tolerance, None))
    for number, (value, gap) in enumerate(drawn):
        instant += gap
        source.append(Update(number, instant, value))
        seen += [Seen(d.instant, d.row) for d in classes.arrive(source[-1])]
    seen += [Seen(d.instant, d.row) for d in classes.advance(instant + 9)]
    assert fidelity(tolerance, source, seen, 0, instant + 9) == 1


def test_losses_are_averaged_over_each_readers_objects_first():
    assert loss([[1.0, 0.5], [0.9]]) == pytest.approx((0.25 + 0.1) / 2)
    assert loss([]) == 0
