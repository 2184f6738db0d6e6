import pytest

from thalweg.plan.coherency.classes import Due, Start
from thalweg.plan.coherency.stream import StreamClasses
from thalweg.plan.coherency.tolerance import Age, Deviation, Update


def test_each_key_has_its_own_held_values():
    stream = StreamClasses()
    stream.start(0, Deviation(5))
    assert stream.arrive("a", Update(0, 1, 100))[0].classes == (0,)
    assert stream.arrive("b", Update(0, 2, 10))[0].classes == (0,)
    assert stream.arrive("a", Update(1, 3, 104)) == []
    assert stream.arrive("b", Update(1, 4, 16))[0].classes == (0,)


def test_a_class_starts_for_all_keys_with_what_each_has():
    stream = StreamClasses()
    first = Update(0, 1, 100)
    stream.arrive("a", first)
    assert stream.start(3, Deviation(5)) == {"a": Start(3, Deviation(5), first)}
    assert stream.keys["a"].held[3] == first
    assert stream.arrive("new", Update(0, 2, 1))[0].classes == (3,)
    with pytest.raises(ValueError, match="already"):
        stream.start(3, Deviation(1))


def test_what_is_old_passes_in_order_of_instants_over_all_keys():
    stream = StreamClasses()
    stream.start(0, Age(5))
    for key, instant in (("a", 10), ("b", 8)):
        stream.arrive(key, Update(0, instant, 0))
        stream.arrive(key, Update(1, instant + 1, 1))
    found = stream.advance(99)
    assert found == [("b", Due(14, Update(1, 9, 1), (0,))), ("a", Due(16, Update(1, 11, 1), (0,)))]


def test_a_class_that_ended_starts_at_no_new_key():
    stream = StreamClasses()
    stream.start(0, Deviation(0))
    stream.end(0)
    assert stream.arrive("a", Update(0, 1, 1)) == []
