import pytest

from thalweg.engine.site import Position
from thalweg.engine.site.positions import START, parse_position
from thalweg.plan.windows import FOREVER


@pytest.mark.parametrize(
    "position",
    [START, Position(3, 7), Position(3, 7, 0), Position(3, -7, 12), Position(12, FOREVER)],
)
def test_a_position_reads_back(position: Position) -> None:
    assert parse_position(str(position)) == position


def test_a_row_has_run_instant_and_ordinal() -> None:
    assert str(Position(3, 1700, 2)) == "3.1700.2"


def test_a_frontier_stands_behind_all_earlier_rows_and_before_those_of_its_instant() -> None:
    assert Position(3, 6, 99) < Position(3, 7) < Position(3, 7, 0)
    assert str(Position(3, 7)) == "3.7"
    assert str(Position(3, FOREVER)) == "3.end"


@pytest.mark.parametrize(
    "text", ["", "x", "1", "7-3", "1.", "1.2.3.4", "1.2.-3", "1.x", f"1.{1 << 63}"]
)
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a result id"):
        parse_position(text)
