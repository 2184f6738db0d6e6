"""Which rows are due: by heaps as by the definition, and the same whatever the tree."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.plan.coherency.classes import Due, KeyClasses, Start
from thalweg.plan.coherency.tolerance import (
    Age,
    ChangesSince,
    Deviation,
    RelativeDeviation,
    Update,
    diverges,
)

values = st.one_of(st.none(), st.integers(-6, 6), st.sampled_from([0.5, -1.25, float("nan")]))
tolerances = st.one_of(
    st.builds(Deviation, st.sampled_from([0, 0.3, 1, 2.5])),
    st.builds(RelativeDeviation, st.sampled_from([0, 0.1, 0.5])),
    st.builds(ChangesSince, st.integers(0, 4)),
    st.builds(Age, st.integers(1, 7)),
)


def stream(values, gaps):
    instant, found = 0, []
    for number, (value, gap) in enumerate(zip(values, gaps, strict=True)):
        instant += gap
        found.append(Update(number, instant, value))
    return found


def by_definition(tolerance, rows, end):
    """One class, looked at after every instant."""
    held, back, newest, passed = None, None, None, []
    to_come = list(rows)
    for instant in range(end + 1):
        if isinstance(tolerance, Age) and held is not None and back is not None:
            limits = tolerance.limits(held, back)
            if diverges(limits, held, newest, instant):
                passed.append((instant, newest))
                held, back = newest, None
        while to_come and to_come[0].instant == instant:
            newest = to_come.pop(0)
            if held is None or (
                not isinstance(tolerance, Age)
                and diverges(tolerance.limits(held, None), held, newest, instant)
            ):
                passed.append((instant, newest))
                held, back = newest, None
            elif back is None:
                back = newest
    return passed


@given(
    st.lists(st.tuples(values, st.integers(1, 4)), max_size=25), st.lists(tolerances, max_size=6)
)
def test_heaps_agree_with_the_definition_of_each_class(drawn, wanted):
    rows = stream([v for v, _ in drawn], [g for _, g in drawn])
    classes = KeyClasses()
    for name, tolerance in enumerate(wanted):
        classes.start(Start(name, tolerance, None))
    end = (rows[-1].instant if rows else 0) + 10
    found = [due for row in rows for due in classes.arrive(row)] + classes.advance(end)
    assert [d.instant for d in found] == sorted(d.instant for d in found)
    for name, tolerance in enumerate(wanted):
        passed = [(d.instant, d.row) for d in found if name in d.classes]
        assert passed == by_definition(tolerance, rows, end)


def rows_of(*values):
    return [Update(i, i, v) for i, v in enumerate(values)]


def passed(tolerance, rows):
    classes = KeyClasses()
    classes.start(Start(7, tolerance, None))
    return [d.row.value for row in rows for d in classes.arrive(row)]


def test_a_loose_child_is_not_starved_by_a_strict_parent():
    """1, 1.2, 1.4, 1.6: filtered by 0.3 first, a reader at 0.5 would stay at 1."""
    rows = rows_of(*map(Decimal, ("1", "1.2", "1.4", "1.6")))
    strict, loose = Deviation(Decimal("0.3")), Deviation(Decimal("0.5"))
    assert passed(strict, rows) == [1, Decimal("1.4")]
    assert passed(loose, rows) == [1, Decimal("1.6")]
    of_the_parent = rows_of(*passed(strict, rows))
    assert passed(loose, of_the_parent) == [1]


@pytest.mark.parametrize(
    ("tolerance", "expected"),
    [
        (Deviation(0), [1, 2, 3, 2]),
        (Deviation(1), [1, 3]),
        (RelativeDeviation(0.5), [1, 2]),
        (ChangesSince(1), [1, 2, 2]),
        (ChangesSince(0), [1, 2, 2, 3, 2]),
    ],
)
def test_a_row_is_due_when_the_divergence_exceeds_the_tolerance(tolerance, expected):
    assert passed(tolerance, rows_of(1, 2, 2, 3, 2)) == expected


def test_by_age_the_newest_row_passes_when_the_first_held_back_is_old():
    classes = KeyClasses()
    classes.start(Start(1, Age(5), None))
    first, second, third = Update(0, 10, 1), Update(1, 12, 2), Update(2, 14, 3)
    assert classes.arrive(first) == [Due(10, first, (1,))]
    assert classes.arrive(second) == []
    assert classes.arrive(third) == []
    assert classes.advance(16) == []
    assert classes.advance(30) == [Due(17, third, (1,))]
    assert classes.advance(99) == []  # nothing is held back
    later = Update(3, 100, 4)
    assert classes.arrive(later) == []
    assert classes.arrive(Update(4, 200, 5)) == [Due(105, later, (1,))]


def test_a_class_may_start_with_what_is_held_and_newcomers_begin_with_it():
    classes = KeyClasses()
    old = Update(3, 30, 10)
    classes.start(Start(1, Deviation(2), old))
    assert classes.held[1] == old
    assert classes.arrive(Update(4, 31, 12)) == []
    assert classes.held[1] == old
    assert classes.arrive(Update(5, 32, 13))[0].classes == (1,)
    assert classes.held[1].value == 13
    with pytest.raises(ValueError, match="already"):
        classes.start(Start(1, Deviation(1), None))


def test_a_class_that_ended_is_due_for_nothing():
    classes = KeyClasses()
    for name, tolerance in enumerate((Deviation(0), ChangesSince(0), Age(1))):
        classes.start(Start(name, tolerance, Update(0, 0, 1)))
        classes.end(name)
    assert classes.arrive(Update(1, 1, 2)) == []
    assert classes.arrive(Update(2, 9, 3)) == []


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="negative"):
        Deviation(-1)
    with pytest.raises(ValueError, match="negative"):
        RelativeDeviation(float("nan"))
    with pytest.raises(ValueError, match="leave it out"):
        Age(0)


def test_a_value_that_only_rises_leaves_no_litter():
    classes = KeyClasses()
    for name in range(10):
        classes.start(Start(name, Deviation(0), None))
    for number in range(1_000):
        classes.arrive(Update(number, number, number))
    assert len(classes._below) < 100
