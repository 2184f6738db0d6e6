import pytest

from thalweg.engine.shared.frames import FOREVER
from thalweg.engine.site.status import instant_text
from thalweg.plan.windows import BEGINNING


@pytest.mark.parametrize(
    ("instant", "resolution_us", "is_temporal", "text"),
    [
        (None, 1000, True, None),
        (BEGINNING, 1000, True, None),
        (FOREVER, 1000, True, "end"),
        (1_735_689_600_123, 1000, True, "2025-01-01 00:00:00.123"),
        (86_400, 1_000_000, True, "1970-01-02 00:00:00"),
        (42, 1_000_000, False, "42"),
        (1 << 60, 1000, True, str(1 << 60)),
    ],
)
def test_an_instant_is_shown_as_its_stream_writes_it(
    instant: int | None, resolution_us: int, is_temporal: bool, text: str | None
) -> None:
    assert instant_text(instant, resolution_us, is_temporal) == text
