"""Which tuples count: lateness per partition, order by (timestamp, position)."""

import pytest

from thalweg.engine.arrivals import Arrival, admit, watermark
from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.types import BIGINT
from thalweg.plan.windows import BEGINNING


def stream(lateness=0, is_relation=False):
    return StreamDef(
        "S", (Field("a", BIGINT),), "ts", BIGINT, lateness=lateness, is_relation=is_relation
    )


def arrivals(*stamps, partition=0):
    return [Arrival(partition, ts, i, (i,)) for i, ts in enumerate(stamps)]


def timestamps(found):
    return [a.timestamp for a in found]


def test_tuple_below_its_partitions_watermark_is_late():
    admission = admit(stream(lateness=3), arrivals(10, 7, 6, 11, 7, 8))
    assert timestamps(admission.accepted) == [7, 8, 10, 11]
    assert timestamps(admission.late) == [6, 7]


def test_watermark_around_zero_and_below():
    admission = admit(stream(lateness=3), arrivals(0, -3, -4, -2))
    assert timestamps(admission.late) == [-4]


def test_without_lateness_an_equal_timestamp_is_in_time():
    assert admit(stream(), arrivals(5, 5, 5)).late == ()


def test_partitions_have_their_own_watermarks():
    ahead, behind = arrivals(100, 101), arrivals(1, 2, partition=1)
    assert admit(stream(), [*ahead, *behind]).late == ()


def test_interleaving_of_partitions_does_not_matter():
    left, right = arrivals(5, 9, 3, partition=0), arrivals(2, 8, 7, partition=1)
    one = admit(stream(lateness=1), left + right)
    other = admit(stream(lateness=1), [t for pair in zip(left, right, strict=True) for t in pair])
    assert timestamps(one.accepted) == timestamps(other.accepted)
    assert set(one.late) == set(other.late)


def test_equal_timestamps_are_ordered_by_position_not_by_arrival():
    first, second = Arrival(0, 5, 1, ("a",)), Arrival(1, 5, 0, ("b",))
    assert [a.position for a in admit(stream(), [first, second]).accepted] == [0, 1]


def test_only_a_relation_takes_rows_back():
    minus = Arrival(0, 1, 0, (1,), "-")
    assert admit(stream(is_relation=True), [minus]).accepted == (minus,)
    with pytest.raises(ValueError, match="S is a stream"):
        admit(stream(), [minus])


def test_streams_watermark_is_the_slowest_partitions():
    seen = [*arrivals(10, 30), *arrivals(20, partition=1)]
    assert watermark(stream(lateness=5), seen, (0, 1)) == 15
    assert watermark(stream(lateness=5), seen, (0, 1, 2)) == BEGINNING
