import pytest

from thalweg.engine.shared.explain.state import Size, State, bytes_text, sizes
from thalweg.engine.shared.state.segments import Segment


def segment(table: str, rows: int) -> Segment:
    return Segment(table, "bundle", rows, 100, rows, 0, 0, 0, 0)


def test_segments_of_a_table_add_up() -> None:
    found = sizes(
        [
            segment("state/f/op/state", 3),
            segment("state/f/op/state", 4),
            segment("state/f/op/ends", 1),
        ]
    )
    assert found["state/f/op/state"] == Size(7, 200, 2)
    assert State(found).parts("f", "op") == {
        "ends to come": Size(1, 100, 1),
        "rows": Size(7, 200, 2),
    }


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 40, "5.0 TiB")]
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert bytes_text(size) == text
