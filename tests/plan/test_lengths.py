import pytest

from thalweg.plan.catalog import Field, StreamDef
from thalweg.plan.lengths import length_text
from thalweg.plan.moments import moment_text
from thalweg.plan.text import window_text
from thalweg.plan.types import BIGINT, TIMESTAMP, VARCHAR, SqlType
from thalweg.plan.windows import HopWindow, RowsWindow, SessionWindow, TimeWindow


def stream(type_: SqlType = TIMESTAMP, resolution_us: int = 1000) -> StreamDef:
    return StreamDef("S", (Field("k", VARCHAR),), "ts", type_, resolution_us=resolution_us)


def test_windows_are_shown_in_the_units_that_people_write() -> None:
    of_time = stream()
    assert window_text(TimeWindow(3_600_000), of_time) == "[Range 1 hour]"
    assert window_text(TimeWindow(5_400_000, 10_000), of_time) == (
        "[Range 90 minutes Slide 10 seconds]"
    )
    assert window_text(TimeWindow(250), of_time) == "[Range 250 ms]"
    assert window_text(HopWindow(60_000, 10_000), of_time) == "[Hop 1 minute Every 10 seconds]"
    assert window_text(HopWindow(86_400_000, 86_400_000), of_time) == "[Tumble 1 day]"
    assert window_text(SessionWindow(300_000, (0,)), of_time, of_time.fields) == (
        "[Session 5 minutes Partition By k]"
    )
    assert window_text(RowsWindow(3, 1, (0,)), of_time, of_time.fields) == "[Partition By k Rows 3]"
    assert window_text(TimeWindow(0), of_time) == "[Now]"
    assert window_text(TimeWindow(None, 60_000), of_time) == "[Unbounded Slide 1 minute]"


@pytest.mark.parametrize(
    ("instants", "resolution_us", "text"),
    [
        (60, 1_000, "60"),  # README's: the numbers count whatever they count
        (3_600_000, 1_000, "1 hour"),
        (1_500, 1_000, "1500"),
        (60, 1_000_000, "1 minute"),  # RESOLUTION 1 SECOND says what they count
        (100, 10_000, "1 second"),
        (25, 10_000, "250 ms"),
        (0, 1_000_000, "0"),
    ],
)
def test_integers_become_time_where_they_are_known_to_be(
    instants: int, resolution_us: int, text: str
) -> None:
    assert length_text(instants, stream(BIGINT, resolution_us)) == text


def test_moments_have_the_places_of_their_resolution() -> None:
    assert moment_text(1_767_225_600, 1_000_000) == "2026-01-01 00:00:00"
    assert moment_text(1_767_225_600_000, 1_000) == "2026-01-01 00:00:00.000"
    assert moment_text(1_767_225_600_000_123, 1) == "2026-01-01 00:00:00.000123"
    assert moment_text(1 << 60, 1_000_000) == str(1 << 60)
